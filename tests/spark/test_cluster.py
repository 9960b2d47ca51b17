"""`sluice cluster`: every process it starts it also ends, also when its supervisor is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluice.cli import main
from sluice.errors import BadInputError, SluiceError
from sluice.spark.cluster import jars, lifecycle, standalone
from sluice.spark.cluster.limits import cores_of, limits_for
from sluice.spark.cluster.plan import ClusterPlan, ClusterSize, Daemon
from sluice.spark.cluster.processes import is_alive, marked_processes
from sluice.spark.cluster.supervisor import OWNER, PLAN_FILE
from sluice.spark.cluster.workers import alive_workers

STARTS_A_PROCESS_THAT_OUTLIVES_IT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", sys.argv[1]], start_new_session=True)
time.sleep(300)
"""


def processes_of(home: Path) -> list[int]:
    """Everything on this machine that names this folder, the supervisor included."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(home).encode() in command and is_alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool], patience_s: float = 60.0) -> bool:
    deadline_s = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.1)
    return True


def status(home: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    with pytest.raises(SystemExit, match="0"):
        main(["cluster", "status", "--home", str(home), "--json"])
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.spark
@pytest.mark.slow
def test_a_cluster_through_its_life(java: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "cluster"
    try:
        state = standalone.up(home, workers=1, slots=1)
        assert status(home, capsys)["alive_workers"] == 1
        with pytest.raises(BadInputError, match="running already"):
            standalone.up(home, workers=1, slots=1)

        # a master that dies is started anew, and its worker finds it
        os.kill(state.process_ids["master"], signal.SIGKILL)
        assert wait_until(lambda: _master(home) not in (None, state.process_ids["master"]))
        again = lifecycle.read_state(home)
        assert again is not None
        assert again.master_url == state.master_url
        assert wait_until(lambda: len(alive_workers(again)) == 1)

        # nothing outlives a supervisor that is killed, and it can be said and cleaned up
        os.kill(state.supervisor_pid, signal.SIGKILL)
        assert wait_until(lambda: lifecycle.read_state(home) is None)
        assert status(home, capsys) == {"running": False}
    finally:
        lifecycle.down(home)
    assert wait_until(lambda: not processes_of(home)), processes_of(home)
    assert lifecycle.down(home) is False


@pytest.mark.spark
@pytest.mark.slow
def test_a_cluster_that_does_not_start_says_why(java: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "java-home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'Error: this Java is from 1995' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(program.parents[1]))
    home = tmp_path / "cluster"
    home.mkdir()
    (home / "master.log").write_text("ERROR of the cluster before\n")
    began_s = time.monotonic()
    with pytest.raises(
        SluiceError, match=r"did not start: (master|worker-0): Error: this Java is from 1995; .*logs"
    ) as error:
        standalone.up(home, workers=1, slots=1)
    assert time.monotonic() - began_s < lifecycle.START_TIMEOUT_S
    assert "\n" not in str(error.value)
    assert wait_until(lambda: not processes_of(home)), processes_of(home)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_what_daemons_have_started_ends_with_the_supervisor(tmp_path: Path, ending: signal.Signals) -> None:
    mark = f"mark={tmp_path}/"
    supervisor = _supervisor_of_two(tmp_path, mark)
    assert wait_until(lambda: len(marked_processes(mark)) == 2)
    supervisor.send_signal(ending)
    supervisor.wait()
    assert wait_until(lambda: not marked_processes(mark), patience_s=20)


def test_a_cluster_ends_with_its_owner_however_that_ends(tmp_path: Path) -> None:
    mark = f"mark={tmp_path}/"
    owner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    supervisor = _supervisor_of_two(tmp_path, mark, owner.pid)
    assert wait_until(lambda: len(marked_processes(mark)) == 2)
    owner.kill()
    owner.wait()
    supervisor.wait(timeout=20)
    assert wait_until(lambda: not marked_processes(mark), patience_s=20)


def _supervisor_of_two(home: Path, mark: str, owner: int | None = None) -> subprocess.Popen[bytes]:
    """Of a daemon that starts a second process, both with this mark."""
    daemon = Daemon(command=[sys.executable, "-c", STARTS_A_PROCESS_THAT_OUTLIVES_IT, mark])
    size = ClusterSize(workers=1, slots=1)
    plan = ClusterPlan(kind="yarn", size=size, master_url="", web_url="", daemons={"daemon": daemon}, mark=mark)
    (home / PLAN_FILE).write_text(plan.to_json())
    command = [sys.executable, "-m", "sluice.spark.cluster.supervisor", str(home)]
    return subprocess.Popen(command, env={**os.environ, **({OWNER: str(owner)} if owner else {})})


def _master(home: Path) -> int | None:
    state = lifecycle.read_state(home)
    return state.process_ids["master"] if state else None


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"workers": -1, "slots": 1}, "workers must be at least 0, got -1"),
        ({"workers": 1, "slots": 0}, "slots must be at least 1, got 0"),
        ({"workers": 1, "slots": 1, "memory_mb": 100}, "memory_mb must be at least 512, got 100"),
        ({"workers": 1, "slots": 1, "cpus": 0.0}, "cpus must be at least 0.05, got 0"),
        ({"workers": 1000, "slots": 1}, "workers must be at most 200, got 1000"),
    ],
)
def test_a_cluster_that_makes_no_sense_is_refused(tmp_path: Path, sizes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        standalone.up(tmp_path, **sizes)


@pytest.mark.parametrize("folder", ["/proc/nowhere", "FILE"])
@pytest.mark.parametrize("words", [["up"], ["up", "--yarn"], ["status"], ["down"], ["revive"]])
def test_a_folder_that_cannot_be_used_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str, words: list[str]
) -> None:
    (tmp_path / "FILE").touch()
    home = folder.replace("FILE", str(tmp_path / "FILE"))
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    jars.HADOOP.folder.mkdir()
    with pytest.raises(SystemExit) as ended:
        main(["cluster", *words, "--home", home])
    captured = capsys.readouterr()
    if words[0] in ("up", "revive"):
        assert ended.value.code == 2
        (said,) = captured.err.splitlines()
        assert home in said
    else:
        assert (ended.value.code, captured.err) == (0, "")


def test_a_cache_that_cannot_be_written_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICE_CACHE", "/proc/nowhere")
    with pytest.raises(SystemExit, match="2"):
        main(["cluster", "up", "--yarn"])
    assert "cannot write to '/proc/nowhere' (SLUICE_CACHE): " in capsys.readouterr().err.splitlines()[-1]


def test_workers_below_a_core_share_it_with_their_neighbours():
    assert [cores_of(number, 0.5, [0, 1]) for number in range(4)] == [[0], [0], [1], [1]]
    assert [cores_of(number, 2, [0, 1, 2, 3]) for number in range(2)] == [[0, 1], [2, 3]]


def test_more_cpus_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"400 workers with 100 cpus each need 40000 cores, this machine has"):
        limits_for(tmp_path, 400, 100.0)
