"""The generator as a process of its own: making records must not slow the job that reads them, nor stop with its lock.

The parent sends the streams through a pipe and keeps it open; when it closes, on purpose or because the parent died,
the generator finishes its block and ends. Reports come back through a file.
"""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice.errors import SluiceError
from sluice.files import replace_file
from sluice.lab.generator.producer import GeneratorReport, Producer, Stream
from sluice.lab.generator.schedule import TICK_S

STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the process has to do."""

    streams: Mapping[str, Stream]
    topics: Mapping[str, str]
    seed: int
    report: Path
    tick_s: float


class GeneratorProcess:
    """A `Feed` of the Spark engine. Warnings of a late stream go to this process' standard error.

    Its process is there at once, so that it has imported what it needs when `start` gives the order.
    """

    def __init__(self, streams: Mapping[str, Stream], *, seed: int, report: Path, tick_s: float = TICK_S) -> None:
        self._streams = dict(streams)
        self._seed = seed
        self._report = report
        self._tick_s = tick_s
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sluice.lab.generator"], stdin=subprocess.PIPE, start_new_session=True
        )
        self._end = weakref.finalize(self, _end, self._process)

    def start(self, topics: Mapping[str, str]) -> None:
        self._report.unlink(missing_ok=True)
        order = Order(
            streams=self._streams, topics=dict(topics), seed=self._seed, report=self._report, tick_s=self._tick_s
        )
        pipe: Any = self._process.stdin
        pipe.write(_pickled(order))
        pipe.flush()

    def check(self) -> None:
        """Raise if it ended by itself: a run without arrivals would look like a quiet one."""
        if self._process.poll() is not None:
            raise SluiceError(f"the generator ended: {self.report().error or f'exit code {self._process.returncode}'}")

    def report(self) -> GeneratorReport:
        """As of a moment ago; empty before its first block."""
        try:
            return GeneratorReport.model_validate_json(self._report.read_bytes())
        except FileNotFoundError:
            return GeneratorReport()

    def stop(self) -> GeneratorReport:
        """Ends after the present block; safe to call twice."""
        self._end()
        return self.report()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _pickled(order: Order) -> bytes:
    """Functions written in a user's file cannot be imported elsewhere: Spark's pickler sends them whole."""
    from pyspark import cloudpickle

    pickler: Any = cloudpickle
    found = (inspect.getmodule(stream.generate) for stream in order.streams.values())
    foreign = {module for module in found if module and module.__name__.partition(".")[0] not in ("sluice", "__main__")}
    for module in foreign:
        pickler.register_pickle_by_value(module)
    try:
        content: bytes = pickler.dumps(order)
        return content
    finally:
        for module in foreign:
            pickler.unregister_pickle_by_value(module)


def main() -> int:
    """The generator's own side."""
    try:
        order: Order = pickle.load(sys.stdin.buffer)
    except EOFError:
        return 0  # there never was one
    stop = threading.Event()

    def wait_for_parent() -> None:
        sys.stdin.buffer.read()
        stop.set()

    threading.Thread(target=wait_for_parent, daemon=True).start()

    def save(report: GeneratorReport) -> None:
        replace_file(order.report, report.to_json().encode())

    producer = Producer(
        order.streams,
        order.topics,
        seed=order.seed,
        tick_s=order.tick_s,
        warn=lambda line: print(line, file=sys.stderr, flush=True),
        on_report=save,
    )
    try:
        save(producer.run(stop))
    except Exception as error:
        save(producer.report().model_copy(update={"error": f"{type(error).__name__}: {error}"}))
        raise
    return 0
