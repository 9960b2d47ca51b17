"""How clients live. Kafka's library has a broker of its own inside a client, for tests: no Java is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

BEGIN = """
import faulthandler, gc, os, threading
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec
from sluice.spark.kafka.clients import OpenClients, clients, library
from sluice.spark.kafka.connection import Broker

faulthandler.enable()
broker = Broker(bootstrap="inside:1", prefix="p", config={config!r})


def ask(admin):
    partition = TopicPartition("t", 0)
    return admin.list_offsets({{partition: OffsetSpec.latest()}}, request_timeout=20)[partition]
"""


def run(tmp_path: Path, program: str) -> str:
    """A program of its own: what is tested for ends a process."""
    config = tmp_path / "client.properties"
    config.write_text("test.mock.num.brokers=1\n")
    words = [sys.executable, "-c", BEGIN.format(config=str(config)) + program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr}"
    return done.stdout


def test_garbage_collected_in_a_thread_of_the_library_ends_nothing(tmp_path: Path) -> None:
    program = """
class Holder: ...

gc.disable()
holder = Holder()
holder.itself, holder.admin = holder, clients.admin(broker)
asked = ask(holder.admin)
dropped, threads = threading.Event(), []

def collect(_):
    dropped.wait(20)
    gc.collect()
    threads.append(threading.current_thread())

asked.add_done_callback(collect)
clients._admins.clear()
del holder
dropped.set()
asked.exception(20)
clients.close_all()
assert threads[0] is not threading.main_thread(), threads
print(len(clients))
"""
    assert run(tmp_path, program) == "0\n"


def test_a_program_ends_well_with_clients_open_and_answers_on_their_way(tmp_path: Path) -> None:
    program = """
asked = [ask(clients.admin(broker)) for _ in range(20)]
producer = clients.add(library().Producer(broker.client()))
producer.produce("t", b"never sent")
with clients.lent_consumer(broker) as consumer:
    consumer.assign([TopicPartition("t", 0, 0)])
print(len(clients))
"""
    assert run(tmp_path, program) == "3\n"


def test_a_child_of_a_fork_leaves_its_parents_clients_alone(tmp_path: Path) -> None:
    program = """
before = clients.admin(broker)
child = os.fork()
if child == 0:
    gc.collect()
    clients.close_all()
    os._exit(7 if len(clients) == 0 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert clients.admin(broker) is before
"""
    run(tmp_path, program)


def test_a_consumer_goes_to_one_reader_at_a_time_and_then_to_the_next(tmp_path: Path) -> None:
    program = """
with clients.lent_consumer(broker) as first, clients.lent_consumer(broker) as second:
    assert first is not second
with clients.lent_consumer(broker) as third:
    assert third in (first, second)
try:
    with clients.lent_consumer(broker) as failed:
        raise OSError
except OSError:
    pass
with clients.lent_consumer(broker) as next_one:
    assert next_one is not failed
print(len(clients))
"""
    assert run(tmp_path, program) == "1\n"
