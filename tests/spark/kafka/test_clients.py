"""How clients live. Kafka's library has a broker of its own inside a client, for tests: no Java is needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sluice

pytest.importorskip("confluent_kafka")

CALLS_BACK = re.compile(r"AdminClient\(|\b(error|stats|throttle|oauth|log)_cb\b|\bon_(delivery|commit|assign)=")
BEGIN = """
import faulthandler, gc, os, threading
from confluent_kafka import TopicPartition
from sluice.spark.kafka.clients import clients, library
from sluice.spark.kafka.connection import Broker

faulthandler.enable()
broker = Broker(bootstrap="inside:1", prefix="p", config={config!r})
"""


def run(tmp_path: Path, program: str) -> str:
    """A program of its own: what is tested for ends a process."""
    config = tmp_path / "client.properties"
    config.write_text("test.mock.num.brokers=1\n")
    words = [sys.executable, "-c", BEGIN.format(config=str(config)) + program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr}"
    return done.stdout


def test_what_answers_in_a_thread_of_the_library_is_used_by_a_process_of_its_own() -> None:
    package = Path(sluice.__file__).parent
    users = [path for path in package.rglob("*.py") if CALLS_BACK.search(path.read_text())]
    assert [path.name for path in users] == ["new_topic.py"]


def test_a_program_ends_well_with_clients_open_and_in_use(tmp_path: Path) -> None:
    program = """
def use():
    with clients.lent_consumer(broker) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        while True:
            used.set()
            consumer.consume(100, 1)

used = threading.Event()
threading.Thread(target=use, daemon=True).start()
producer = clients.add(library().Producer(broker.client()))
producer.produce("t", b"never sent")
with clients.lent_consumer(broker):
    used.wait(20)
print(len(clients))
"""
    assert run(tmp_path, program) == "3\n"


def test_a_child_of_a_fork_leaves_its_parents_clients_alone(tmp_path: Path) -> None:
    program = """
with clients.lent_consumer(broker) as before:
    pass
child = os.fork()
if child == 0:
    gc.collect()
    with clients.lent_consumer(broker) as own:
        os._exit(7 if own is not before and len(clients) == 1 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
with clients.lent_consumer(broker) as again:
    assert again is before
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
