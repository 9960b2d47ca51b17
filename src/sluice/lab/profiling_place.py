"""Where operators are profiled: in this process, or each alone on a worker of a cluster, as CAPSys does it (5.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sluice.errors import BadInputError
from sluice.model import Observation, Placement, Target, Worker
from sluice.processes import cpu_seconds
from sluice.spark.pipeline.definition import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluice.spark.pipeline.engine import SparkEngine
    from sluice.spark.pipeline.feed import Feed


class ProfilingPlace(Protocol):
    """Runs one operator at a time and tells what CPU time that takes."""

    def engine(self, pipeline: Pipeline, root: Path, slots: int, feed: Feed) -> SparkEngine: ...

    def target(self, engine: SparkEngine, operator: str, parallelism: int) -> Target: ...

    def begin(self) -> None:
        """CPU time counts from here."""
        ...

    def cpu_s(self, seen: Observation, elapsed_s: float) -> float | None:
        """CPU time since `begin`, all of it the operator's; null if it is not known."""
        ...


@dataclass
class Here:
    """In the session of this process: CPU time is that of the process and all it started."""

    spark: SparkSession
    _before_s: float | None = None

    def engine(self, pipeline: Pipeline, root: Path, slots: int, feed: Feed) -> SparkEngine:
        from sluice.spark.pipeline.engine import SparkEngine

        return SparkEngine(pipeline, root, slots=slots, spark=self.spark, feed=feed)

    def target(self, engine: SparkEngine, operator: str, parallelism: int) -> Target:
        return Target(parallelism={operator: parallelism})

    def begin(self) -> None:
        self._before_s = cpu_seconds()

    def cpu_s(self, seen: Observation, elapsed_s: float) -> float | None:
        now_s = cpu_seconds()
        return None if now_s is None else now_s - (self._before_s or 0.0)


@dataclass
class OnWorkers:
    """Every operator alone on one worker, the next operator on the next one.

    CPU time is that of the worker's executor and all it started; where its machine is another one, only what tasks used
    in the JVM is known.
    """

    spark: SparkSession
    master: str
    _turns: dict[str, int] = field(default_factory=dict)

    def engine(self, pipeline: Pipeline, root: Path, slots: int, feed: Feed) -> SparkEngine:
        from sluice.spark.pipeline.engine import SparkEngine

        return SparkEngine(pipeline, root, spark=self.spark, master=self.master, places=True, feed=feed)

    def target(self, engine: SparkEngine, operator: str, parallelism: int) -> Target:
        worker = self._worker_of(operator, engine)
        if parallelism > worker.slots:
            raise BadInputError(
                f"--parallelism must be at most the {worker.slots} slots of worker {worker.name}, got {parallelism}"
            )
        placement = Placement(tasks={worker.name: {operator: parallelism}})
        return Target(parallelism={operator: parallelism}, placement=placement)

    def begin(self) -> None:
        """Observations have the CPU time of their window."""

    def cpu_s(self, seen: Observation, elapsed_s: float) -> float | None:
        busiest = max(seen.workers.values(), key=lambda worker: sum(worker.source_tasks.values()), default=None)
        if busiest is None:
            return None
        cores = busiest.cpu if busiest.cpu is not None else busiest.task_cpu
        return None if cores is None else cores * elapsed_s

    def _worker_of(self, operator: str, engine: SparkEngine) -> Worker:
        assert engine.cluster is not None
        workers = engine.cluster.workers
        return workers[self._turns.setdefault(operator, len(self._turns)) % len(workers)]
