"""The archive of Spark's classes: written by the first JVM, used by the next, left alone where there is another."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sluice.spark.class_archive import ClassArchive

WRITES_WHEN_ITS_INPUT_ENDS = "import sys; sys.stdin.read(); open(sys.argv[1].partition('=')[2], 'w').write('classes')"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    monkeypatch.setattr("sluice.spark.class_archive.queries_started", started := threading.Event())
    started.set()
    return tmp_path


def made() -> ClassArchive:
    return ClassArchive("java", Path("spark"))


def jvm(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", *arguments], stdin=subprocess.PIPE)


def at_exit(monkeypatch: pytest.MonkeyPatch, archive: ClassArchive, process: subprocess.Popen[bytes]) -> None:
    """What Python does with the handlers when it ends."""
    handlers = []
    monkeypatch.setattr("atexit.register", lambda *handler: handlers.append(handler))
    archive.keep_at_exit(process)
    for function, *given in handlers:
        function(*given)


def test_the_first_jvm_writes_it_and_the_next_uses_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = made()
    option = archive.java_options().split()[0]
    assert option.startswith("-XX:ArchiveClassesAtExit=")
    at_exit(monkeypatch, archive, jvm(WRITES_WHEN_ITS_INPUT_ENDS, option))
    assert archive.path.read_text() == "classes"
    assert made().java_options().split()[0] == f"-XX:SharedArchiveFile={archive.path}"
    assert list(archive.path.parent.iterdir()) == [archive.path]


def test_a_session_without_queries_has_seen_too_few_classes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.spark.class_archive.queries_started", threading.Event())
    archive = made()
    at_exit(monkeypatch, archive, jvm(WRITES_WHEN_ITS_INPUT_ENDS, archive.java_options().split()[0]))
    assert not list(archive.path.parent.iterdir())


def test_a_jvm_that_writes_nothing_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = made()
    at_exit(monkeypatch, archive, jvm("import sys; sys.stdin.read()", archive.java_options()))
    assert not list(archive.path.parent.iterdir())


def test_a_jvm_that_was_not_asked_to_write_is_not_waited_for(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = jvm("import sys; sys.stdin.read()")
    at_exit(monkeypatch, made(), process)
    assert process.poll() is None
    process.communicate()


def test_what_a_killed_process_has_left_goes_after_a_while(cache: Path) -> None:
    archive = made()
    archive.java_options()
    old, new = (archive.path.with_name(f"{archive.path.name}.{number}") for number in (1, 2))
    for left in (old, new):
        left.touch()
    os.utime(old, (0, 0))
    archive.java_options()
    assert list(archive.path.parent.iterdir()) == [new]


@pytest.mark.parametrize("option", ["-XX:SharedArchiveFile=mine.jsa", "-Xshare:off"])
def test_who_has_chosen_an_archive_keeps_it(cache: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", option)
    assert not made().java_options()


def test_another_java_or_another_spark_has_another(cache: Path) -> None:
    found = {ClassArchive(java, Path(spark)).path for java in ("java", "other") for spark in ("spark", "other")}
    assert len(found) == 4


def test_where_nothing_can_be_written_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "file"))
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    assert not made().java_options()


def test_the_oldest_makes_room_for_the_next(cache: Path) -> None:
    folder = made().path.parent
    folder.mkdir(parents=True)
    for age in range(5):
        (folder / f"spark-{age}.jsa").write_text("classes")
        os.utime(folder / f"spark-{age}.jsa", (1_000 - age, 1_000 - age))
    made().java_options()
    assert sorted(path.name for path in folder.iterdir()) == ["spark-0.jsa", "spark-1.jsa"]
