"""What every registered policy does through `attach`: one or two queries, a load that steps up and down.

The application is a model of one: a batch per second, executors that do a hundred records per second each.
"""

from __future__ import annotations

import pytest

from sluice.control.decider import Decider
from sluice.control.engine import RecordCount
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.journal.file import MemoryJournal
from sluice.model import Graph, Observation, Outcome, Target
from sluice.policy import policies
from sluice.spark.attach.application import (
    ExecutorInfo,
    QueryBatch,
    QueryWindow,
    application_graph,
    executors_needed,
    observe_application,
    useful_executors,
)
from sluice.spark.attach.wishes import WhileIdle, WithObjective
from sluice.spark.metrics import Stage

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
        self._before: dict[str, QueryBatch] = {}
        self._work_s: dict[str, float] = {}
        self.executors = 1
        self.asked: list[int] = []
        self.clock = self
        self.graph: Graph = application_graph(tuple(load[0]), 1, {})

    def now_s(self) -> float:
        return self._time_s

    def sleep_s(self, duration_s: float) -> None:
        self._time_s += duration_s

    def start(self, plan: Target) -> None:
        pass

    def observe(self) -> Observation:
        cycle = min(len(self._load), round(self._time_s / INTERVAL_S)) - 1
        windows = {name: self._window(name, rate) for name, rate in self._load[cycle].items()}
        self._work_s = {name: sum(stage.run_s for stage in window.stages) for name, window in windows.items()}
        useful = {name: useful_executors(window.stages, 1) or MOST for name, window in windows.items()}
        self.graph = application_graph(tuple(windows), 1, useful)
        here = [
            ExecutorInfo(executor_id=str(number), cores=1, active_tasks=1, holds_blocks=False, added_s=0.0)
            for number in range(self.executors)
        ]
        return observe_application(windows, here, time_s=self._time_s, interval_s=INTERVAL_S)

    def _window(self, name: str, rate: float) -> QueryWindow:
        cores = min(self.executors, self._tasks)
        waiting = self._waiting[name] + rate * INTERVAL_S
        done = min(waiting, RECORDS_PER_CORE_S * INTERVAL_S * cores / len(self._waiting))
        self._waiting[name] = waiting - done
        began_s, number = self._time_s - INTERVAL_S, round(self._time_s / INTERVAL_S)
        run_s = done / RECORDS_PER_CORE_S
        batches = [
            QueryBatch(
                run_id=name,
                batch_id=number,
                started_s=began_s,
                ended_s=began_s + max(0.5, run_s / cores),
                records={"all": int(done)},
                state_bytes=None,
                state_io_bytes=0.0,
                lag_records=int(waiting - done),
            )
        ]
        before, self._before[name] = self._before.get(name), batches[0]
        return QueryWindow(
            began_s=began_s,
            ended_s=self._time_s,
            now_s=self._time_s,
            batches=batches if done else [],
            before=before,
            stages=[
                Stage(
                    batch_id=number,
                    tasks=self._tasks,
                    run_s=run_s,
                    cpu_s=run_s,
                    input_records=0,
                    output_records=0,
                    output_bytes=0,
                )
            ]
            if done
            else [],
            core_seconds=INTERVAL_S * self.executors,
            trigger_s=1.0,
            running=False,
        )

    def apply(self, plan: Target) -> Outcome:
        count = executors_needed(plan.parallelism, {**dict.fromkeys(plan.parallelism, 0.0), **self._work_s})
        before, self.executors = self.executors, count
        self.asked.append(count)
        return Outcome(changed=dict.fromkeys(plan.parallelism, (before, count)))

    def stop(self) -> RecordCount:
        return RecordCount(arrived=0, processed=0, waiting=0, lost=0, duplicated=0)


def run(name: str, load: list[dict[str, float]], *, tasks: int = 8) -> tuple[ModelApplication, list[dict[str, object]]]:
    application = ModelApplication(load, tasks)
    policy = WhileIdle(inner=WithObjective(inner=policies.create(name), latency_s=30.0), idle_s=60.0, minimum=1)
    journal = MemoryJournal()
    Loop(
        engine=application,
        decider=Decider(policy),
        journal=journal,
        guards=Guards(min_parallelism=1, max_parallelism=MOST),
    ).run(Target(parallelism=dict.fromkeys(load[0], 1)), duration_s=len(load) * INTERVAL_S, interval_s=INTERVAL_S)
    return application, [dict(entry) for entry in journal.entries if entry["kind"] == "cycle"]


STEP = [*[{"q": 30.0}] * 10, *[{"q": 280.0}] * 30, *[{"q": 30.0}] * 30, *[{"q": 0.0}] * 30]


@pytest.fixture(params=policies.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_policy_decides_without_a_problem_within_bounds_and_comes_down_when_idle(name: str) -> None:
    application, cycles = run(name, STEP)
    assert [cycle["problem"] for cycle in cycles if cycle["problem"]] == []
    assert all(1 <= count <= MOST for count in application.asked)
    assert application.executors == 1


def test_every_policy_keeps_up_with_the_step_with_an_objective(name: str) -> None:
    application, _ = run(name, STEP[:40])
    assert application.executors >= 3, f"{name} asked for {application.asked}"


def test_every_policy_is_capped_by_the_tasks_there_are(name: str) -> None:
    application, _ = run(name, [{"q": 500.0}] * 40, tasks=2)
    assert max(application.asked, default=1) <= 2


def test_every_policy_serves_queries_that_share_executors(name: str) -> None:
    application, cycles = run(name, [*[{"a": 10.0, "b": 10.0}] * 10, *[{"a": 150.0, "b": 20.0}] * 30])
    assert [cycle["problem"] for cycle in cycles if cycle["problem"]] == []
    assert all(1 <= count <= MOST for count in application.asked)


def test_ds2_follows_the_step_and_an_idle_application_comes_back() -> None:
    _, cycles = run("ds2", [*STEP, *[{"q": 280.0}] * 20])
    seen = [cycle["observation"]["operators"]["q"]["parallelism"] for cycle in cycles]  # type: ignore[index]
    assert (seen[5], seen[35], seen[65], seen[95], seen[-1]) == (1, 4, 1, 1, 4)
