"""What every registered policy does through `attach`: one or two queries, a load that steps up and down.

The application is a model of one: a batch per second, executors that do a hundred records per second each.
"""

from __future__ import annotations

import pytest

from sluice.control.decider import Decider
from sluice.control.engine import Ability, RecordCount
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.journal.file import MemoryJournal
from sluice.journal.records import Cycle
from sluice.model import Graph, Observation, OperatorChange, Reconciliation, Target
from sluice.protocol import policies
from sluice.spark.attach.application import (
    ExecutorInfo,
    application_graph,
    observe_application,
    useful_executors,
)
from sluice.spark.attach.wrappers import IdleRelease, LatencyObjective, SharedExecutors
from sluice.spark.observe.events import Batch, BatchStage
from sluice.spark.observe.window import BatchSpan, QueryWindow, backlog_of

RECORDS_PER_CORE_S = 100.0
INTERVAL_S = 10.0
MOST = 4


class ModelApplication:
    """Time passes by intervals; what arrives is worked off as far as the executors' cores allow."""

    def __init__(self, load: list[dict[str, float]], tasks: int) -> None:
        self._load = load
        self._tasks = tasks
        self._time_s = 0.0
        self._waiting = dict.fromkeys(load[0], 0.0)
        self._before: dict[str, Batch] = {}
        self.executors = 1
        self.requested: list[int] = []
        self.clock = self
        self.tick_s = None
        self.abilities: frozenset[Ability] = frozenset()
        self.graph: Graph = application_graph(tuple(load[0]), 1, {})

    def now_s(self) -> float:
        return self._time_s

    def sleep_s(self, duration_s: float) -> None:
        self._time_s += duration_s

    def start(self, target: Target) -> Target:
        return target

    def observe(self) -> Observation:
        cycle = min(len(self._load), round(self._time_s / INTERVAL_S)) - 1
        self._waiting = {name: self._waiting[name] + rate * INTERVAL_S for name, rate in self._load[cycle].items()}
        done = self._done()
        windows = {name: self._window(name, done[name]) for name in self._waiting}
        useful = {name: useful_executors(window.span.stages, 1) or MOST for name, window in windows.items()}
        self.graph = application_graph(tuple(windows), 1, useful)
        here = [
            ExecutorInfo(executor_id=str(number), cores=1, active_tasks=1, holds_blocks=False, added_s=0.0)
            for number in range(self.executors)
        ]
        return observe_application(windows, here, time_s=self._time_s, interval_s=INTERVAL_S)

    def _done(self) -> dict[str, float]:
        """The cores are shared evenly; what a query does not need is left to those that need more."""
        per_core = RECORDS_PER_CORE_S * INTERVAL_S
        left, done = per_core * self.executors, {}
        for position, name in enumerate(sorted(self._waiting, key=lambda name: self._waiting[name])):
            share = min(left / (len(self._waiting) - position), per_core * self._tasks)
            done[name] = min(self._waiting[name], share)
            left -= done[name]
        return done

    def _window(self, name: str, done: float) -> QueryWindow:
        cores = min(self.executors, self._tasks)
        waiting = self._waiting[name]
        self._waiting[name] = waiting - done
        began_s, number = self._time_s - INTERVAL_S, round(self._time_s / INTERVAL_S)
        run_s = done / RECORDS_PER_CORE_S
        batch = Batch(
            run_id=name,
            batch_id=number,
            started_s=began_s,
            ended_s=began_s + max(0.5, run_s / cores),
            records=int(done),
            lag_records=int(waiting - done),
        )
        stage = BatchStage(
            run_id=name,
            batch_id=number,
            tasks=self._tasks,
            run_s=run_s,
            cpu_s=run_s,
            input_records=0,
            output_records=0,
            output_bytes=0,
        )
        span = BatchSpan(
            began_s=began_s,
            ended_s=self._time_s,
            now_s=self._time_s,
            batches=[batch] if done else [],
            before=self._before.get(name),
            stages=[stage] if done else [],
        )
        self._before[name] = batch
        return QueryWindow(
            span=span,
            parallelism=self.executors,
            slots=self.executors,
            slot_changes=[(began_s, self.executors)],
            backlog=backlog_of(span),
            trigger_s=1.0,
            is_idle=not done,
        )

    def maintain(self) -> tuple[str, ...]:
        return ()

    def reconcile(self, target: Target) -> Reconciliation:
        (count,) = set(target.parallelism.values())
        before, self.executors = self.executors, count
        counts = dict.fromkeys(target.parallelism, count)
        if count == before:
            return Reconciliation(requested=counts, observed=counts)
        self.requested.append(count)
        changes = {name: OperatorChange(before=before, requested=count) for name in counts}
        return Reconciliation(requested=counts, observed=counts, changes=changes)

    def stop(self) -> RecordCount:
        return RecordCount(arrived=0, processed=0, waiting=0, lost=0, duplicated=0)


def run(
    name: str, load: list[dict[str, float]], *, tasks: int = 8, aims: bool = True
) -> tuple[ModelApplication, tuple[Cycle, ...]]:
    application = ModelApplication(load, tasks)
    objective = LatencyObjective(inner=policies.create(name), latency_s=30.0) if aims else policies.create(name)
    policy = IdleRelease(inner=SharedExecutors(inner=objective), idle_s=60.0, minimum=1)
    journal = MemoryJournal()
    Loop(
        engine=application,
        decider=Decider(policy),
        journal=journal,
        guards=Guards(min_parallelism=1, max_parallelism=MOST),
    ).run(Target(parallelism=dict.fromkeys(load[0], 1)), duration_s=len(load) * INTERVAL_S, interval_s=INTERVAL_S)
    return application, tuple(report.cycle for report in journal.reports())


STEP = [*[{"q": 30.0}] * 10, *[{"q": 280.0}] * 30, *[{"q": 30.0}] * 30, *[{"q": 0.0}] * 30]


@pytest.fixture(params=policies.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_policy_decides_without_a_problem_within_bounds_and_comes_down_when_idle(name: str) -> None:
    application, cycles = run(name, STEP)
    assert [cycle.problem for cycle in cycles if cycle.problem] == []
    assert all(1 <= count <= MOST for count in application.requested)
    assert application.executors == 1


def test_every_policy_keeps_up_with_the_step_with_an_objective(name: str) -> None:
    application, _ = run(name, STEP[:40])
    assert application.executors >= 3, f"{name} asked for {application.requested}"


def test_every_policy_is_capped_by_the_tasks_there_are(name: str) -> None:
    application, _ = run(name, [{"q": 500.0}] * 40, tasks=2)
    assert max(application.requested, default=1) <= 2


def test_every_policy_serves_queries_that_share_executors(name: str) -> None:
    application, cycles = run(name, [*[{"a": 10.0, "b": 10.0}] * 10, *[{"a": 150.0, "b": 20.0}] * 30])
    assert [cycle.problem for cycle in cycles if cycle.problem] == []
    assert all(1 <= count <= MOST for count in application.requested)


@pytest.mark.parametrize("name", ["ds2", "big-ds2", "hpa-cpu", "hpa-varga", "threshold"])
@pytest.mark.parametrize("load", [{"a": 150.0, "b": 150.0}, {"a": 250.0, "b": 20.0}, {"a": 90.0, "b": 90.0, "c": 90.0}])
def test_queries_that_share_executors_get_what_they_need_together(name: str, load: dict[str, float]) -> None:
    """Three executors would do; by what each needs alone there would be two, and a backlog that grows for ever."""
    low = dict.fromkeys(load, 10.0)
    application, cycles = run(name, [*[low] * 10, *[load] * 30], aims=False)
    assert application.executors >= 3, application.requested
    lags = [cycle.observation.operators["a"].lag for cycle in cycles]
    assert lags[-1] <= lags[-2], lags


def test_ds2_follows_the_step_and_an_idle_application_comes_back() -> None:
    _, cycles = run("ds2", [*STEP, *[{"q": 280.0}] * 20])
    seen = [cycle.observation.parallelism["q"] for cycle in cycles]
    assert (seen[5], seen[35], seen[65], seen[95], seen[-1]) == (1, 4, 1, 1, 4)
