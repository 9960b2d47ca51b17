"""The contract of providers, for the one in memory, a command line, and nodes of this machine without a master."""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
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


def test_a_type_may_have_any_name(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "worker_daemon", lambda *_, **__: Daemon(command=["sleep", "60"]))
    monkeypatch.setattr(local, "java_home_problem", lambda: None)
    odd = SMALL.model_copy(update={"name": "../m5 large/2"})
    nodes = LocalNodes("spark://h:1", [odd], tmp_path / "nodes", cores=1.0, limits=False)
    (node,) = nodes.start(odd.name, 1)
    assert node.name == "../m5 large/2-1"
    assert sorted(path.name for path in (tmp_path / "nodes").iterdir()) == [".._m5_large_2-1", ".._m5_large_2-1.log"]
    nodes.close()


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
        ("true {type}", "--node-start must print HOST or NAME HOST, got ''"),
        (r"printf '\377\376 a b' # {type}", "--node-start must print HOST or NAME HOST, got '.. a b'"),
        ("exit 7 # {type}", "--node-start ended with 7: no message"),
        ("no-such-command {type}", "--node-start ended with 127: .*not found"),
        ("seq 9999; seq 9999 >&2; exit 1 # {type}", "--node-start ended with 1: 9999$"),
    ],
)
def test_a_command_that_fails_says_so_in_one_line(start, complaint):
    provider = CommandNodes(NodeCommands(start=start, stop="true {node}"), TYPES)
    with pytest.raises(SluiceError, match=complaint):
        provider.start("small", 1)


@pytest.mark.parametrize("start", ["sleep 60 # {type}", "(sleep 60; true) | cat # {type}"])
def test_a_command_that_hangs_ends_with_all_it_has_begun(start):
    provider = CommandNodes(NodeCommands(start=start, stop="true {node}"), TYPES, timeout_s=0.2)
    with pytest.raises(SluiceError, match=r"--node-start did not end within 0\.2 s"):
        provider.start("small", 1)


def test_what_a_command_leaves_running_does_not_hold_it_up(tmp_path):
    start = "sleep 30 & echo $! >$PWD/pid; echo 10.0.0.9 # {type}".replace("$PWD", str(tmp_path))
    provider = CommandNodes(NodeCommands(start=start, stop="kill $(cat pid) # {node}"), TYPES, timeout_s=20.0)
    (node,) = provider.start("small", 1)
    assert (node.name, node.host) == ("10.0.0.9", "10.0.0.9")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)


def test_a_command_that_starts_the_same_node_again_is_refused():
    provider = CommandNodes(NodeCommands(start="echo 10.0.0.9 # {type}", stop="true {node}"), TYPES)
    (node,) = provider.start("small", 1)
    with pytest.raises(SluiceError, match=r"--node-start must start another node each time, got '10\.0\.0\.9' again"):
        provider.start("large", 1)
    provider.stop(node)
    assert provider.start("large", 1)


def test_whoever_goes_does_not_wait_for_a_start_that_hangs(tmp_path):
    start = f"touch {tmp_path}/begun; sleep 60 # {{type}}"
    provider = CommandNodes(NodeCommands(start=start, stop="true {node}"), TYPES)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(provider.start, "small", 1)
        NodeSuite()._until((tmp_path / "begun").exists)
        provider.abandon_starts()
        with pytest.raises(SluiceError, match="--node-start ended with -9"):
            answer.result()
    with pytest.raises(SluiceError, match="the run is over"):
        provider.start("small", 1)


@pytest.mark.parametrize(("listing", "gone"), [("echo other", True), ("echo a", False), ("exit 1", False)])
def test_a_stop_that_fails_because_the_node_is_gone_is_none(listing, gone):
    provider = CommandNodes(NodeCommands(start="echo a 10.0.0.9 # {type}", stop="false {node}", list=listing), TYPES)
    (node,) = provider.start("small", 1)
    if gone:
        provider.stop(node)
    else:
        with pytest.raises(SluiceError, match="--node-"):
            provider.stop(node)


@pytest.mark.parametrize("content", ["", "[{]", '[{"name": "a"}]', '{"a": 1}', "[1]"])
def test_a_broken_list_of_nodes_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "nodes.json").write_text(content)
    with pytest.raises(BadInputError, match="does not say which nodes a run had"):
        CommandNodes(NodeCommands(start="a {type}", stop="b {node}"), TYPES, file=tmp_path / "nodes.json")


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
