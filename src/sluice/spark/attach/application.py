"""A Spark application as policies see it: one operator per query, executors as instances. Pure.

All queries of an application share its executors, so every operator shows the same parallelism, and its busy share is
the part of all task slots that its tasks used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice.model import Graph, Observation, Operator, OperatorMetrics
from sluice.spark.observe.events import BatchStage
from sluice.spark.observe.metrics import make_observation
from sluice.spark.observe.window import QueryWindow

NO_QUERY = "application"
"""The operator an application without a running query consists of: a graph needs one."""
BOUND_BY_TASKS = "no stage has more tasks; partitions of the sources and spark.sql.shuffle.partitions set their number"


@dataclass(frozen=True, kw_only=True)
class ExecutorInfo:
    """One executor as the status store reports it."""

    executor_id: str
    cores: int
    active_tasks: int
    holds_blocks: bool
    added_s: float


def distinct_names(queries: Mapping[str, str | None], known: Mapping[str, str]) -> dict[str, str]:
    """Query id -> operator name. Sessions may give the same name to queries: the later ones get part of their id."""
    names = {query_id: known[query_id] for query_id in queries if query_id in known}
    for query_id, name in queries.items():
        if query_id not in names:
            own = name or f"query-{query_id[:8]}"
            names[query_id] = f"{own}-{query_id[:8]}" if own in names.values() else own
    return names


def observe_application(
    queries: Mapping[str, QueryWindow],
    executors: Sequence[ExecutorInfo],
    *,
    time_s: float,
    interval_s: float,
    at_work: bool | None = None,
    other_tasks: float | None = None,
) -> Observation:
    """`other_tasks` are those of jobs that belong to no query, None if there are no such jobs."""
    cores = sum(executor.cores for executor in executors)
    other_busy = None if other_tasks is None else min(1.0, other_tasks / cores) if cores else 0.0
    if queries:
        seen = make_observation(queries, time_s=time_s, interval_s=interval_s)
        return seen.model_copy(update={"at_work": at_work, "other_busy": other_busy})
    nothing = OperatorMetrics(parallelism=max(1, len(executors)))
    return Observation(
        time_s=time_s, interval_s=interval_s, operators={NO_QUERY: nothing}, at_work=at_work, other_busy=other_busy
    )


def useful_executors(stages: Sequence[BatchStage], cores_each: int) -> int | None:
    """Executors beyond one core per task idle; the widest stage that takes a tenth of the time or more counts."""
    total_s = sum(stage.run_s for stage in stages)
    widest = max((stage.tasks for stage in stages if stage.run_s >= total_s / 10), default=0)
    return -(-widest // max(1, cores_each)) if widest else None


def application_graph(names: Sequence[str], min_executors: int, useful_executors: Mapping[str, int]) -> Graph:
    """`useful_executors` caps what a query can use: executors beyond one core per task of its widest stage idle.

    Queries may run at the same time, so together they can use the sum; while one is unknown, nobody knows it.
    """
    together = sum(useful_executors.values()) if names and set(names) <= useful_executors.keys() else None
    return Graph(
        operators=tuple(
            Operator(
                name=name,
                min_parallelism=min_executors,
                max_parallelism=None if together is None else max(min_executors, together),
                bound_by=None if together is None else BOUND_BY_TASKS,
            )
            for name in names or (NO_QUERY,)
        ),
        shared=True,
    )


def choose_to_remove(executors: Sequence[ExecutorInfo], count: int) -> list[ExecutorInfo]:
    """Which executors to release: idle ones first, among them those without blocks others need, the youngest first.

    Executors with running tasks are chosen only if there are not enough others; the caller decides whether to wait.
    """
    ranked = sorted(executors, key=lambda e: (e.active_tasks > 0, e.holds_blocks, -e.added_s, e.executor_id))
    return ranked[:count]
