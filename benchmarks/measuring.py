"""What the Spark benchmarks share: records at a steady rate, and what a run costs the machine.

Memory and CPU are those of every process of this session: the driver, its JVM, the Python workers.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluice.files import replace_file
from sluice.lab.bench.statistics import estimate
from sluice.spark.topic.interface import RecordLog, open_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluice.spark.pipeline.query import OperatorQuery


class SteadyFeed:
    """Appends `make(first, count)` to one source four times a second from a thread, however busy the machine is."""

    def __init__(self, source: str, records_per_s: float, make: Callable[[int, int], pa.Table]) -> None:
        self._source = source
        self._records_per_s = records_per_s
        self._make = make
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, topics: Mapping[str, str]) -> None:
        self._thread = threading.Thread(target=self._run, args=(open_log(topics[self._source]),), daemon=True)
        self._thread.start()

    def check(self) -> None:
        return None

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, topic: RecordLog) -> None:
        began_s, fed, batch_id = time.monotonic(), 0, 0
        while not self._stopped.wait(0.25):
            due = int((time.monotonic() - began_s) * self._records_per_s) - fed
            if due:
                topic.append(self._make(fed, due).cast(topic.schema), producer="feed", batch_id=batch_id)
                fed, batch_id = fed + due, batch_id + 1


class Results:
    """Figures by case in a file, a line each: a benchmark called again goes on with the cases that are missing.

    Several processes may add to the same file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.found: dict[str, Any] = {}
        self.read()

    def __contains__(self, case: str) -> bool:
        return case in self.found

    def add(self, case: str, figures: Any) -> None:
        with open(f"{self._path}.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.read()
            self.found[case] = figures
            lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in self.found.items())
            replace_file(self._path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
        print(f"{case}: {figures}", flush=True)

    def read(self) -> None:
        if self._path.exists():
            self.found = json.loads(self._path.read_text())


def end_on_sigterm() -> None:
    """With what was started: without a handler the process would end and leave it behind."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def run_side_by_side(commands: Sequence[Sequence[str]], variables: Mapping[str, str] | None = None) -> None:
    """All at once; whoever fails ends this program once the others are done."""
    running = [subprocess.Popen(command, env=variables) for command in commands]
    try:
        codes = [process.wait() for process in running]
    finally:
        for process in running:
            process.terminate()
    if any(codes):
        raise SystemExit(f"exit codes {codes}")


def session_processes(session: int = 0) -> Iterator[Path]:
    """Of this session, or of the one with that leader."""
    wanted = session or os.getsid(0)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == wanted:
                    yield entry
            except ProcessLookupError:
                continue


def cpu_s(session: int = 0) -> float:
    ticks = 0
    for process in session_processes(session):
        try:
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def finished_batches(query: OperatorQuery) -> list[Any]:
    """The progress of the last hundred, oldest first, as Spark gives it."""
    assert query._streaming is not None
    return list(query._streaming.recentProgress)


@dataclass(frozen=True)
class Speed:
    records_per_s: float
    cpu_s_per_million: float


def speed_of(done_records: Callable[[], int], total: int, used_cpu_s: Callable[[], float] = cpu_s) -> Speed:
    """From the moment a third is done to the end; from the beginning if all came at once."""
    marks = [(0, time.monotonic(), used_cpu_s())]
    for share in (1 / 3, 1.0):
        while (done := done_records()) < total * share:
            time.sleep(0.1)
        marks.append((done, time.monotonic(), used_cpu_s()))
    last, ended_s, ended_cpu_s = marks.pop()
    first, began_s, began_cpu_s = next(mark for mark in reversed(marks) if mark[0] < last)
    moved = last - first
    return Speed(moved / (ended_s - began_s), (ended_cpu_s - began_cpu_s) / moved * 1e6)


def alternate(
    runs: Mapping[str, Callable[[int], Speed]], rounds: int, results: Results, *, case: str, within_s: float
) -> dict[str, list[Speed]]:
    """All rounds there are of a case, each run's speeds in order; rounds that are missing are run, each in turn.

    The first round of a call is not counted: the JVM compiles. None is begun that would not end `within_s`.
    """
    began_s = time.monotonic()
    missing = [number for number in range(1, rounds + 1) if f"{case} {number}" not in results]
    for number in [0, *missing] if missing else []:
        round_began_s = time.monotonic()
        found = {}
        for name, run in runs.items():
            found[name] = run(number)
            print(f"{case} {number} {name:9} {found[name].records_per_s:12,.0f} records/s", flush=True)
        if number > 0:
            results.add(f"{case} {number}", {name: asdict(speed) for name, speed in found.items()})
        now_s = time.monotonic()
        if now_s - began_s + (now_s - round_began_s) > within_s:
            break
    done = [results.found[key] for number in range(1, rounds + 1) if (key := f"{case} {number}") in results]
    return {name: [Speed(**one[name]) for one in done] for name in runs}


def ratio(values: Sequence[float], others: Sequence[float]) -> str:
    """Round by round: the mean and, with two rounds or more, its 95 % interval."""
    found = estimate(one / other for one, other in zip(values, others, strict=True))
    interval = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.mean:.2f}{interval}, {found.count} rounds"


def machine_cpu_s() -> float:
    """Of all processes, other sessions' too."""
    user, nice, system = Path("/proc/stat").read_text().split(maxsplit=4)[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


class JvmThreads:
    """CPU time of threads of the driver's JVM: its gateway keeps one for each of Python's."""

    def __init__(self, spark: SparkSession) -> None:
        assert spark._jvm is not None
        self._jvm: Any = spark._jvm
        self._management = self._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        self._ids: dict[str, int] = {}

    def note(self, name: str) -> None:
        """Remember the one that answers the caller."""
        if name not in self._ids:
            self._ids[name] = self._jvm.java.lang.Thread.currentThread().getId()

    def forget(self, name: str) -> None:
        self._ids.pop(name, None)

    def cpu_s(self) -> dict[str, float]:
        return {name: self._management.getThreadCpuTime(thread) / 1e9 for name, thread in self._ids.items()}


def memory_mb() -> float:
    """Proportional set size: pages that workers share count once."""
    total_kb = 0
    for process in session_processes():
        try:
            lines = (process / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total_kb += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return total_kb / 1024


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
