"""Flink from PyPI in an environment of its own, and a cluster of one job manager and one task manager."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pyspark

from benchmarks.measuring import cpu_s
from sluice.errors import SluiceError
from sluice.spark.cluster.jars import JarSet
from sluice.testing.spark_versions import install

VERSION = "2.3.0"
CACHE = Path.home() / ".cache" / "sluice-flink"
FORMATS = JarSet(
    name=f"flink-parquet-{VERSION}",
    whose=f"Flink's Parquet format {VERSION}",
    needed_by="the comparison with Flink",
    artifacts={"org.apache.flink:flink-sql-parquet": VERSION},
    transitive=False,
)
SETTINGS = {
    "taskmanager.memory.process.size": "4g",
    # state on the heap is none of it
    "taskmanager.memory.managed.fraction": "0.1",
    "jobmanager.memory.process.size": "1g",
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "state.backend.type": "hashmap",
    "metrics.fetcher.update-interval": "200",
}
PATIENCE_S = 60.0
ENDED = ("FINISHED", "CANCELED")


def flink_python() -> Path:
    """Of the environment, which is made if it is not there."""
    return install(CACHE / f"flink-{VERSION}", [f"apache-flink=={VERSION}"], sys.executable)


class FlinkCluster:
    """Its processes are a session of their own, so that their CPU time can be told from everybody else's."""

    def __init__(self, root: Path, *, slots: int, settings: Mapping[str, str]) -> None:
        self._python = flink_python()
        self._root = root
        self._closing = ExitStack()
        self._port = _free_port()
        home = next(self._python.parent.parent.glob("lib/python*/site-packages/pyflink"))
        self._write_configuration(home, {**SETTINGS, "taskmanager.numberOfTaskSlots": str(slots), **settings})
        self._environment = {
            **{key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")},
            "FLINK_CONF_DIR": str(root / "conf"),
            "FLINK_LOG_DIR": str(root / "log"),
            "HADOOP_CLASSPATH": _class_path(),
        }
        self._sessions: list[int] = []
        try:
            self._start(str(home / "bin" / "jobmanager.sh"), "start-foreground")
            self._start(str(home / "bin" / "taskmanager.sh"), "start-foreground")
            self._await_workers()
            self._submitter = self._start(str(self._python), str(Path(__file__).with_name("submit.py")))
        except BaseException:
            self.end()
            raise

    def submit(self, statements: list[str], settings: Mapping[str, str]) -> str:
        """The id of the job that the last statement is."""
        target = {"execution.target": "remote", "rest.address": "localhost", "rest.port": str(self._port)}
        asked = {"statements": statements, "settings": {**target, **settings}}
        assert self._submitter.stdin is not None
        assert self._submitter.stdout is not None
        print(json.dumps(asked), file=self._submitter.stdin, flush=True)
        line = self._submitter.stdout.readline()
        if not line:
            raise SluiceError(f"Flink did not take the job; see {self._root / 'log'}")
        return str(json.loads(line)["job"])

    def ask(self, path: str, change: Mapping[str, Any] | None = None, *, method: str = "GET") -> Any:
        """An answer of the job manager."""
        data = None if change is None else json.dumps(change).encode()
        request = urllib.request.Request(f"http://localhost:{self._port}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
            content = reply.read()
        return json.loads(content) if content else None

    def state(self, job: str) -> str:
        """Of a job that has not failed."""
        state = str(self.ask(f"/jobs/{job}")["state"])
        if state == "FAILED":
            problem = self.ask(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"][0]["stacktrace"]
            raise SluiceError(f"Flink's job failed: {problem[:2000]}")
        return state

    def await_end(self, job: str) -> None:
        while self.state(job) not in ENDED:
            time.sleep(0.2)

    def source_records(self, job: str) -> int:
        """What its sources have handed out so far."""
        return self._total(job, r"Source.*\.numRecordsOut")

    def cpu_s(self) -> float:
        return sum(cpu_s(session) for session in self._sessions)

    def output(self) -> Path:
        """What jobs have printed."""
        return self._root / "out"

    def end(self) -> None:
        self._closing.close()

    def _total(self, job: str, name: str) -> int:
        total = 0
        for vertex in self.ask(f"/jobs/{job}")["vertices"]:
            where = f"/jobs/{job}/vertices/{vertex['id']}/subtasks/metrics"
            names = [one["id"] for one in self.ask(where) if re.fullmatch(name, one["id"])]
            if names:
                total += sum(int(one["sum"]) for one in self.ask(f"{where}?get={','.join(names)}&agg=sum"))
        return total

    def _start(self, *command: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if command[0] == str(self._python) else (self._root / "out").open("a"),
            stderr=(self._root / "errors").open("a"),
            text=True,
            start_new_session=True,
        )
        self._sessions.append(process.pid)
        self._closing.callback(_end, process)
        return process

    def _write_configuration(self, home: Path, settings: Mapping[str, str]) -> None:
        for folder in ("conf", "log", "checkpoints", "temporary"):
            (self._root / folder).mkdir(parents=True, exist_ok=True)
        shipped = (home / "conf" / "config.yaml").read_text()
        opens = re.search(r"^\s+all:\s*(--add.*)$", shipped, re.MULTILINE)
        lines = {
            **({"env.java.opts.all": opens.group(1)} if opens else {}),
            "jobmanager.rpc.address": "localhost",
            "jobmanager.bind-host": "localhost",
            "jobmanager.rpc.port": str(_free_port()),
            "taskmanager.bind-host": "localhost",
            "taskmanager.host": "localhost",
            "rest.address": "localhost",
            "rest.bind-address": "localhost",
            "rest.port": str(self._port),
            "rest.bind-port": str(self._port),
            "io.tmp.dirs": str(self._root / "temporary"),
            "execution.checkpointing.dir": (self._root / "checkpoints").as_uri(),
            **settings,
        }
        text = "".join(f"{name}: {value}\n" for name, value in lines.items())
        (self._root / "conf" / "config.yaml").write_text(text)
        for log in (home / "conf").glob("log4j*.properties"):
            (self._root / "conf" / log.name).write_bytes(log.read_bytes())

    def _await_workers(self) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            try:
                if self.ask("/overview")["taskmanagers"]:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise SluiceError(f"Flink did not start within {PATIENCE_S:g} s; see {self._root / 'log'}")


def _class_path() -> str:
    """Flink's Parquet format, and the Hadoop it wants, which Spark brings along."""
    spark_jars = Path(pyspark.__file__).parent / "jars"
    return ":".join(str(jar) for jar in (*FORMATS.get().glob("*.jar"), *spark_jars.glob("hadoop-client-*.jar")))


def _end(process: subprocess.Popen[str]) -> None:
    """The whole session: the shell scripts of Flink may have started their JVM beside them."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 15)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return int(one.getsockname()[1])
