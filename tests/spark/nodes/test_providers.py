"""The contract of providers, for the one in memory, a command line, and nodes of this machine without a master."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from sluice.errors import BadInputError, SluiceError
from sluice.spark.cluster.plan import Daemon
from sluice.spark.nodes import local
from sluice.spark.nodes.command import CommandNodes, NodeCommands
from sluice.spark.nodes.local import LocalNodes
from sluice.testing.node_suite import NodeSuite
from tests.spark.nodes.fakes import SMALL, TYPES, FakeNodes


class TestFake(NodeSuite):
    @pytest.fixture
    def provider(self):
        return FakeNodes()


def commands(folder: Path) -> NodeCommands:
    """Nodes are files."""
    start = f"n=$(ls {folder} | wc -l); touch {folder}/{{type}}-$n; echo {{type}}-$n 10.1.0.$n"
    return NodeCommands(start=start, stop=f"mv {folder}/{{node}} {folder}/.{{node}} || true", list=f"ls {folder}")


class TestCommands(NodeSuite):
    @pytest.fixture
    def provider(self, tmp_path):
        return CommandNodes(commands(tmp_path), TYPES)


class TestLocal(NodeSuite):
    """A process that sleeps stands for a worker: there is no master to join."""

    @pytest.fixture
    def provider(self, tmp_path, monkeypatch):
        sleeping = Daemon(command=[sys.executable, "-c", "import time; time.sleep(60)"])
        monkeypatch.setattr(local, "worker_daemon", lambda *_, **__: sleeping)
        monkeypatch.setattr(local, "java_home_problem", lambda: None)
        nodes = LocalNodes("spark://h:1", TYPES, tmp_path, cores=1.0, limits=False)
        yield nodes
        nodes.close()
        assert nodes.list() == []

    def test_a_machine_has_only_so_many_cores(self, provider):
        provider.start("small", 1)
        with pytest.raises(SluiceError, match=r"no room for a 'large': nodes have 0\.5 of 1 cores, it needs 2"):
            provider.start("large", 1)
        with pytest.raises(SluiceError, match="no room for a 'small'"):
            provider.start("small", 2)
        assert len(provider.list()) == 1

    def test_a_worker_gives_its_executor_a_heap_of_the_nodes_memory(self, provider):
        (node,) = provider.start("small", 1)
        environment = Path(f"/proc/{provider.process_id(node)}/environ")
        assert b"_JAVA_OPTIONS=-Xmx512m" in environment.read_bytes().split(b"\0")

    def test_a_node_that_was_killed_is_gone(self, provider):
        (node,) = provider.start("small", 1)
        os.kill(provider.process_id(node), signal.SIGKILL)
        self._until(lambda: not provider.list())


def test_nodes_without_a_quota_would_not_be_of_a_size(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "cpu_hierarchy", lambda: None)
    monkeypatch.setattr(local, "java_home_problem", lambda: None)
    with pytest.raises(BadInputError, match="need CPU quotas"):
        LocalNodes("spark://h:1", TYPES, tmp_path)


def test_a_node_type_too_small_for_an_executor_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "java_home_problem", lambda: None)
    tiny = SMALL.model_copy(update={"memory_mb": 100.0})
    with pytest.raises(BadInputError, match="node type 'small': an executor needs 512 MB, got 100"):
        LocalNodes("spark://h:1", [tiny], tmp_path, limits=False)


@pytest.mark.parametrize(
    ("start", "complaint"),
    [
        ("echo full >&2; exit 3 # {type}", "--node-start ended with 3: full"),
        ("echo one two three # {type}", "--node-start must print HOST or NAME HOST, got 'one two three'"),
        ("sleep 5 # {type}", "--node-start did not end within 0.2 s"),
    ],
)
def test_a_command_that_fails_says_so_in_one_line(start, complaint):
    provider = CommandNodes(NodeCommands(start=start, stop="true {node}"), TYPES, timeout_s=0.2)
    with pytest.raises(SluiceError, match=complaint):
        provider.start("small", 1)


def test_nodes_outlive_the_process_that_started_them_and_are_found_again(tmp_path):
    (tmp_path / "nodes").mkdir()
    first = CommandNodes(commands(tmp_path / "nodes"), TYPES, file=tmp_path / "nodes.json")
    (node,) = first.start("small", 1)
    again = CommandNodes(commands(tmp_path / "nodes"), TYPES, file=tmp_path / "nodes.json")
    assert list(again.list()) == [node]
    again.stop(node)
    assert list(CommandNodes(commands(tmp_path / "nodes"), TYPES, file=tmp_path / "nodes.json").list()) == []


def test_the_second_of_two_nodes_fails_and_the_first_is_stopped(tmp_path):
    start = f"test ! -e {tmp_path}/a && touch {tmp_path}/a && echo a # {{type}}"
    provider = CommandNodes(NodeCommands(start=start, stop=f"rm {tmp_path}/{{node}}"), TYPES)
    with pytest.raises(SluiceError, match="--node-start ended with 1"):
        provider.start("small", 2)
    assert (list(provider.list()), list(tmp_path.iterdir())) == ([], [])


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"start": "cmd", "stop": "cmd {node}"}, r"--node-start must contain {type}, got 'cmd'"),
        ({"start": "cmd {type}", "stop": "cmd"}, r"--node-stop must contain {node} or {host}, got 'cmd'"),
    ],
)
def test_commands_must_say_what_they_are_about(given, complaint):
    with pytest.raises(BadInputError, match=complaint):
        NodeCommands(**given)
