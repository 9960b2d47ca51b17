"""Writes streams to their topics on time, and says how well it kept up.

A block that comes late is written all the same, with the event time it was due at: nothing is skipped, the next
ones are late too, and how late is in the report. After a crash it goes on with the tick after its last committed one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import Field

from sluice.lab.generator.schedule import TICK_S, Block, Schedule
from sluice.lab.workloads.base import RateCurve
from sluice.model.base import Count, Frozen, Name, NonNegative
from sluice.spark.pipeline.specs import Generate
from sluice.spark.topic.interface import open_log

PRODUCER = "generator"
LATE_S = 1.0
"""From here on a block counts as late; below it, scheduling of the operating system is to blame."""
WARNING_EVERY_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Stream:
    """What goes into one topic, and how fast."""

    generate: Generate
    curve: RateCurve


class StreamReport(Frozen):
    """`scheduled` is what the workload asked for up to now, `produced` what is in the topic."""

    scheduled: Count = 0
    produced: Count = 0
    elapsed_s: NonNegative = 0.0
    behind_s: NonNegative = 0.0
    worst_behind_s: NonNegative = 0.0

    @property
    def rate(self) -> float | None:
        """Records/s really produced."""
        return self.produced / self.elapsed_s if self.elapsed_s else None


class GeneratorReport(Frozen):
    """One entry per stream; `error` if the generator ended by itself."""

    streams: dict[Name, StreamReport] = Field(default_factory=dict)
    error: str | None = None

    @property
    def kept_up(self) -> bool:
        return self.error is None and all(found.worst_behind_s < LATE_S for found in self.streams.values())

    def summary(self) -> str:
        """One sentence per stream, for people."""
        return "; ".join(
            f"{name}: {found.produced:,} of {found.scheduled:,} records, at worst {found.worst_behind_s:.1f} s behind"
            for name, found in self.streams.items()
        )


class Producer:
    """Runs in the calling thread until it is stopped. `warn` gets one line whenever a stream is late."""

    def __init__(
        self,
        streams: Mapping[str, Stream],
        topics: Mapping[str, str],
        *,
        seed: int,
        warn: Callable[[str], None],
        on_report: Callable[[GeneratorReport], None] = lambda _: None,
        tick_s: float = TICK_S,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._seed = seed
        self._warn = warn
        self._on_report = on_report
        self._now_s = now_s
        self._tick_s = tick_s
        self._writers = {name: _Writer(stream, topics[name], seed, tick_s) for name, stream in streams.items()}
        self._warned_s = -WARNING_EVERY_S

    def run(self, stop: threading.Event) -> GeneratorReport:
        """Every stream's next block when it is due; streams that go on from before go on together."""
        first_tick = min(writer.tick for writer in self._writers.values())
        started_s = self._now_s() - first_tick * self._tick_s
        for writer in self._writers.values():
            writer.started_s = started_s
        while not stop.wait(max(0.0, self._next_due_s() - self._now_s())):
            for name, writer in self._writers.items():
                if writer.due_s <= self._now_s():
                    writer.write_next(self._now_s)
                    self._complain(name, writer.report)
            self._on_report(self.report())
        return self.report()

    def report(self) -> GeneratorReport:
        return GeneratorReport(streams={name: writer.report for name, writer in self._writers.items()})

    def _next_due_s(self) -> float:
        return min(writer.due_s for writer in self._writers.values())

    def _complain(self, name: str, report: StreamReport) -> None:
        if report.behind_s >= LATE_S and self._now_s() - self._warned_s >= WARNING_EVERY_S:
            self._warned_s = self._now_s()
            self._warn(
                f"generator: stream {name!r} is {report.behind_s:.1f} s behind its workload, "
                f"{report.produced:,} records so far; the load is lower than the workload"
            )


class _Writer:
    """One stream: its schedule, its topic and what came of it."""

    def __init__(self, stream: Stream, topic: str, seed: int, tick_s: float) -> None:
        self._topic = open_log(topic)
        self._generate = stream.generate
        self._seed = seed
        last = self._topic.last_batch_id(PRODUCER)
        self.tick = 0 if last is None else last + 1
        self._schedule = Schedule(stream.curve, tick_s=tick_s, tick=self.tick)
        self._planned = Schedule(stream.curve, tick_s=tick_s, tick=self.tick)
        self._block, self._next_planned = self._schedule.next(), self._planned.next()
        self._first_due_s = self._block.due_s - tick_s
        self.started_s = 0.0
        """Unix time of tick 0, or of when it would have been."""
        self.report = StreamReport()

    @property
    def due_s(self) -> float:
        """Unix time of the next block."""
        return self.started_s + self._block.due_s

    def write_next(self, now_s: Callable[[], float]) -> None:
        block, due_s = self._block, self.due_s
        if block.count:
            self._append(block, due_s)
        self._block = self._schedule.next()
        elapsed_s = now_s() - self.started_s
        behind_s = max(0.0, elapsed_s - block.due_s)
        self.report = StreamReport(
            scheduled=self.report.scheduled + self._newly_scheduled(elapsed_s),
            produced=self.report.produced + block.count,
            elapsed_s=max(0.0, elapsed_s - self._first_due_s),
            behind_s=behind_s,
            worst_behind_s=max(self.report.worst_behind_s, behind_s),
        )

    def _newly_scheduled(self, elapsed_s: float) -> int:
        scheduled = 0
        while self._next_planned.due_s <= elapsed_s:
            scheduled += self._next_planned.count
            self._next_planned = self._planned.next()
        return scheduled

    def _append(self, block: Block, due_s: float) -> None:
        table = self._generate(block.first, block.count, due_s, self._seed)
        schema = self._topic.schema
        self._topic.append(table if schema is None else table.cast(schema), producer=PRODUCER, batch_id=block.tick)
