"""Attaching to the sessions of a program that knows nothing of it, with everything of Spark replaced."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sluice.errors import BadInputError
from sluice.spark.attach import run
from sluice.spark.attach.hook import SessionHook


class Attached:
    def __init__(self):
        self.gives_way = False
        self.detached = 0

    def detach(self):
        self.detached += 1


def session_class():
    class Session:
        def __init__(self, application: str = "app-1", settings: dict[str, str] | None = None) -> None:
            """Make a session."""
            running = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
            self.settings = settings or {}
            self._jsparkSession = object()
            self.sparkContext = SimpleNamespace(applicationId=application, _jsc=running)

    return Session


@pytest.fixture(autouse=True)
def settings_of_sessions(monkeypatch):
    monkeypatch.setattr("sluice.spark.attach.configuration.session_settings", lambda spark: spark.settings)


@pytest.fixture
def hooked(monkeypatch):
    """A session class with the hook in it, and what was attached."""
    monkeypatch.setattr("atexit.register", lambda _: None)
    made: list[tuple[object, Attached]] = []

    def attach(spark):
        made.append((spark, Attached()))
        return made[-1][1]

    sessions, hook = session_class(), SessionHook(attach)
    hook.install(sessions)
    return sessions, hook, made


def test_an_application_is_attached_once_and_its_successor_again(hooked):
    sessions, hook, made = hooked
    first, _second, other = sessions(), sessions(), sessions("app-2")
    assert [spark for spark, _ in made] == [first, other]
    assert all(attached.gives_way for _, attached in made)
    hook.close()
    assert [attached.detached for _, attached in made] == [1, 1]


def test_the_class_looks_as_before(hooked):
    assert hooked[0].__init__.__doc__ == "Make a session."


def test_a_configuration_can_switch_it_off(hooked):
    sessions, _, made = hooked
    sessions(settings={"spark.sluice.enabled": "false"})
    assert made == []


@pytest.mark.parametrize("settings", [{}, {"spark.sluice.maxExecutors": "many"}])
def test_a_session_that_cannot_be_attached_is_one_line_and_the_program_goes_on(settings, monkeypatch, caplog):
    monkeypatch.setattr("atexit.register", lambda _: None)

    def refuse(_spark):
        raise BadInputError("master is 'local'")

    sessions = session_class()
    SessionHook(refuse).install(sessions)
    assert sessions(settings=settings).sparkContext.applicationId == "app-1"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert caplog.messages[0].startswith("event=not_attached error=")
    assert ("many" if settings else "master is 'local'") in caplog.messages[0]


def test_a_program_without_a_session_is_told_so(caplog):
    SessionHook().close()
    assert "made no Spark session in its own driver" in caplog.messages[0]


def run_program(tmp_path: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """As spark-submit does: the runner by its path, and no pyspark to be found."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.py").write_text(source)
    (tmp_path / "jobs" / "beside.py").write_text("name = 'beside'")
    (tmp_path / "pyspark.py").write_text("raise ImportError('no pyspark')")
    return subprocess.run(
        [sys.executable, run.__file__, "jobs/job.py", *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_runs_as_if_python_had_started_it(tmp_path):
    source = """
import pickle, sys, beside
class Kept: pass
print(__name__, __file__, sys.argv, beside.name, type(pickle.loads(pickle.dumps(Kept()))) is Kept)
sys.exit(7)
"""
    done = run_program(tmp_path, source, "--x", "1")
    assert done.stdout.strip() == "__main__ jobs/job.py ['jobs/job.py', '--x', '1'] beside True"
    assert done.returncode == 7
    assert "not attached, the program goes on" in done.stderr


@pytest.mark.parametrize("source", ["def fail():\n    raise KeyError('boom')\nfail()\n", "print('a'\n"])
def test_tracebacks_are_those_of_python_itself(tmp_path, source):
    done = run_program(tmp_path, source)
    python = subprocess.run([sys.executable, "jobs/job.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    _ours, _, shown = done.stderr.partition("no pyspark\n")
    assert (shown, done.returncode) == (python.stderr.replace(f"{tmp_path}/", ""), python.returncode)


def test_a_program_that_is_not_there_is_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, run.__file__, "nothing.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == "sluice: cannot read the program 'nothing.py': No such file or directory\n"
    assert done.returncode == 2
