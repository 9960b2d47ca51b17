"""Fills the topics of a pipeline's sources at the rates of a workload, as the outside world would."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import numpy as np

from sluice.engines.spark.pipeline import Generate
from sluice.engines.spark.topic import Topic
from sluice.workloads.base import RateCurve

PRODUCER = "workload"
TICK_S = 0.25


class Feeder:
    """A thread that appends what is due. Records are numbered by their offset, so a resumed run goes on counting."""

    def __init__(
        self,
        topics: Mapping[str, Topic],
        generators: Mapping[str, Generate],
        curves: Mapping[str, RateCurve],
        *,
        seed: int,
        now_s: Callable[[], float],
    ) -> None:
        self._topics = topics
        self._generators = generators
        self._curves = curves
        self._seed = seed
        self._now_s = now_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self.failure: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        due = dict.fromkeys(self._curves, 0.0)
        fed_s = self._now_s()
        try:
            while not self._stopped.wait(TICK_S):
                now_s = self._now_s()
                for source, curve in self._curves.items():
                    rate = float(curve(np.array([(fed_s + now_s) / 2]))[0])
                    due[source] += rate * (now_s - fed_s)
                    due[source] -= self._append(source, int(due[source]))
                fed_s = now_s
        except Exception as error:
            self.failure = error

    def _append(self, source: str, count: int) -> int:
        if count:
            topic = self._topics[source]
            last_batch_id = topic.last_batch_id(PRODUCER)
            table = self._generators[source](topic.end_offset(), count, time.time(), self._seed)
            batch_id = 0 if last_batch_id is None else last_batch_id + 1
            topic.append(table.cast(topic.schema), producer=PRODUCER, batch_id=batch_id)
        return count
