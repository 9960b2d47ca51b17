"""The workers a pipeline runs on: who is there, what ran where, and the placement kept on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluice.model import Cluster, PlacedTasks, Placement, WorkerMetrics
from sluice.spark.internals.status import StatusStore
from sluice.spark.pipeline.runtime import Runtime
from sluice.spark.placed.classes import task_log
from sluice.spark.placed.cluster import executors_of
from sluice.spark.placed.elastic import ElasticExecutors, without_slots
from sluice.spark.placed.placing import Moves
from sluice.spark.placed.process_cpu import ExecutorCpu
from sluice.spark.placed.speeds import TaskSpeeds
from sluice.spark.placed.tasks import TaskAccount
from sluice.spark.placed.workers import Executor, cluster_of, workers_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class WorkerSide:
    """Called by the loop's thread only. `capacity` (cpu, io, net) is that of every worker; null is unlimited.

    Elastic: executors are requested and released as the placement needs them, up to those that came at the start.
    """

    def __init__(
        self, spark: SparkSession, runtime: Runtime, capacity: Mapping[str, float | None], *, elastic: bool = False
    ) -> None:
        self._elastic = ElasticExecutors(spark) if elastic else None
        self._runtime = runtime
        self._capacity = capacity
        self._store = StatusStore(spark)
        self._log = task_log(spark)
        self._account = TaskAccount()
        self.speeds = TaskSpeeds()
        self._cpu = ExecutorCpu(str(spark.sparkContext.applicationId))
        self._cpu.cores(1.0)
        self._names: dict[str, str] = {}
        """Every executor there ever was, and its worker."""
        self._dropped = 0
        self.lost_some = False
        """Whether an executor was gone when we last looked."""
        self.workers: dict[str, Executor] = {}
        self.refresh()
        self._first_slots = self.cluster.slots

    @property
    def slots(self) -> int:
        """Those there are, or can be."""
        there = self.cluster.slots
        return there if self._elastic is None else max(there, self._first_slots)

    def keep_executors(self, wanted: Placement | None) -> tuple[str, ...]:
        """Request and release executors as the placement needs them; a sentence for everything done."""
        if self._elastic is None or wanted is None:
            return ()
        said = self._elastic.reconcile(wanted, self.workers)
        # nothing is to be planned on an executor that is about to end
        self.workers = {name: one for name, one in self.workers.items() if self._stays(one)}
        return said

    def _stays(self, executor: Executor) -> bool:
        return self._elastic is None or executor.executor_id not in self._elastic.released

    def running(self, parallelism: Mapping[str, int], wanted: Placement | None) -> dict[str, int]:
        """The instances that have a slot: those of workers yet to come share the slots of others until then."""
        missing = sum(parallelism.values()) - self.cluster.slots
        if self._elastic is None or wanted is None or missing <= 0:
            return dict(parallelism)
        waiting = without_slots(wanted, missing)
        return {name: count - waiting.get(name, 0) for name, count in parallelism.items()}

    @property
    def cluster(self) -> Cluster:
        return cluster_of(self.workers, self._capacity)

    def refresh(self) -> tuple[str, ...]:
        """Look who is there; a sentence for every worker that came or went. Without any, the last ones count."""
        found = workers_of(filter(self._stays, executors_of(self._store)))
        self.lost_some = any(found.get(name) != executor for name, executor in self.workers.items())
        if not found or found == self.workers:
            return ()
        before, self.workers = self.workers, found
        self._names |= {one.executor_id: name for name, one in found.items()}
        if not before:
            return ()
        gone = [f"worker {name} is gone" for name in before if name not in found]
        came = [f"worker {name} joined with {found[name].cores} slots" for name in found if name not in before]
        again = [
            f"worker {name} has a new executor" for name in found if name in before and found[name] != before[name]
        ]
        return (*gone, *came, *again)

    def place(self, wanted: Placement | None) -> Moves:
        """Keep the placement in force; nothing without one."""
        if self._runtime.placing is None or wanted is None:
            return Moves({})
        return self._runtime.place(wanted, self.workers)

    def sample(self) -> None:
        found = self._log.drain()
        self._dropped += found["dropped"]
        self.speeds.add(found["tasks"], self._operator_of)
        self._account.add(found["tasks"], self._operator_of, self._names.get, found["gone"])

    def close_window(
        self, interval_s: float, io_rates: Mapping[str, float]
    ) -> tuple[dict[str, WorkerMetrics], PlacedTasks | None]:
        """What ran on every worker since the last call, and how much of it where it was planned."""
        self.sample()
        self.speeds.close_window()
        account, self._account = self._account, TaskAccount()
        followed = None
        if self._runtime.placing is not None:
            self._runtime.placing.weigh(account.state_s, account.cpu_s)
            followed = PlacedTasks(
                placed=account.placed + self._dropped, followed=account.followed, displaced=account.displaced
            )
        self._dropped = 0
        cores = self._cpu.cores(interval_s)
        cpu = {name: cores.get(one.executor_id) for name, one in self.workers.items()}
        metrics = account.metrics(self.cluster.workers, interval_s, io_rates)
        return {name: one.model_copy(update={"cpu": cpu.get(name)}) for name, one in metrics.items()}, followed

    def active_tasks(self) -> dict[str, int]:
        """Executor -> tasks it runs now."""
        return {summary["id"]: int(summary["activeTasks"]) for summary in self._store.executors()}

    def close(self) -> None:
        self._log.close()

    def _operator_of(self, run_id: str) -> str | None:
        query = self._runtime.query_of_run(run_id)
        return query.name if query else None
