"""Attaching, as far as it needs no Spark: objectives, idleness, what an application looks like, whom to let go."""

import pytest

from sluice.engines.spark.attach.application import (
    NO_QUERY,
    ExecutorInfo,
    QueryWindow,
    application_graph,
    choose_to_remove,
    executors_needed,
    observe_application,
    read_batch,
    read_lag,
)
from sluice.engines.spark.attach.objective import Objective
from sluice.engines.spark.attach.wishes import WhileIdle, WithObjective
from sluice.engines.spark.metrics import Batch, Stage
from sluice.errors import BadInputError
from sluice.model import Decision, Observation, OperatorMetrics


@pytest.mark.parametrize(
    ("text", "latency_s"),
    [("latency<30s", 30), (" latency <= 1.5 s ", 1.5), ("latency<500ms", 0.5), ("latency<2min", 120)],
)
def test_an_objective_is_read(text, latency_s):
    assert Objective.parse(text).latency_s == latency_s


@pytest.mark.parametrize("text", ["fast", "latency<30", "latency>30s", "latency<0s", "throughput<3s", ""])
def test_an_objective_that_says_nothing_is_refused_by_its_words(text):
    with pytest.raises(BadInputError, match="objective"):
        Objective.parse(text)


def executor(name, *, tasks=0, blocks=False, added_s=0.0, cores=1):
    return ExecutorInfo(executor_id=name, cores=cores, active_tasks=tasks, holds_blocks=blocks, added_s=added_s)


def test_busy_executors_and_those_with_blocks_are_let_go_last():
    here = [
        executor("busy", tasks=1),
        executor("holds", blocks=True),
        executor("old", added_s=1),
        executor("young", added_s=2),
    ]
    assert [e.executor_id for e in choose_to_remove(here, 4)] == ["young", "old", "holds", "busy"]


@pytest.mark.parametrize(
    ("wishes", "work", "needed"),
    [
        ({"a": 5}, {"a": 10.0}, 5),
        ({"a": 5}, {"a": 0.0}, 5),
        ({"a": 6, "b": 2}, {"a": 1.0, "b": 1.0}, 4),
        ({"a": 6, "b": 2}, {"a": 3.0, "b": 1.0}, 5),
        ({"a": 2, "b": 2}, {"a": 9.0, "b": 1.0}, 2),
        ({"a": 1, "b": 2}, {"a": 0.0, "b": 0.0}, 2),
    ],
)
def test_queries_that_share_executors_ask_for_one_number(wishes, work, needed):
    assert executors_needed(wishes, work) == needed


def batch(number, started_s, ended_s, records):
    return Batch(
        run_id="r",
        batch_id=number,
        started_s=started_s,
        ended_s=ended_s,
        records={"all": records},
        state_bytes=7.0,
        state_io_bytes=0,
    )


def window(batches=(), stages=(), lag=None, before=None, running=False):
    return QueryWindow(
        batches=batches, stages=stages, lag_records=lag, lag_before_records=before, trigger_s=None, running=running
    )


def test_a_query_is_busy_by_the_task_time_it_used():
    # two executors of two cores for 10 s: 40 core-seconds, 10 of them used for 1000 records
    stage = Stage(batch_id=0, tasks=4, run_s=10.0, cpu_s=8.0, input_records=1000, output_records=0, output_bytes=0)
    seen = observe_application(
        {"q": window([batch(0, 0, 2, 400), batch(1, 5, 7, 600)], [stage])},
        [executor("1", cores=2), executor("2", cores=2)],
        core_seconds=40.0,
        time_s=10.0,
        interval_s=10.0,
    ).operators["q"]
    assert (seen.parallelism, seen.input_rate, seen.busy, seen.cpu) == (2, 100.0, 0.25, 0.2)
    assert seen.true_input_rate == 400.0
    assert seen.arrival_rate == 100.0
    # half of the 5 s between batches, and the 2 s of its own
    assert seen.latency_s == pytest.approx(4.5)
    assert seen.state_bytes == 7.0


def test_lag_makes_records_late_and_tells_what_arrived():
    seen = observe_application(
        {"q": window([batch(0, 0, 10, 1000)], lag=500, before=300)},
        [executor("1")],
        core_seconds=10,
        time_s=10,
        interval_s=10,
    ).operators["q"]
    assert seen.lag_rate == 20.0
    assert seen.arrival_rate == 120.0
    assert seen.latency_s == pytest.approx(5 + 10 + 5)


def test_a_batch_longer_than_the_window_shows_by_its_running_tasks():
    busy = observe_application(
        {"q": window(running=True)}, [executor("1", tasks=3, cores=4)], core_seconds=40, time_s=10, interval_s=10
    ).operators["q"]
    assert (busy.busy, busy.input_rate) == (0.75, None)


def test_an_idle_query_has_a_rate_of_zero_and_an_application_without_queries_is_known_by_its_executors():
    idle = observe_application({"q": window()}, [executor("1")], core_seconds=10, time_s=10, interval_s=10)
    assert idle.operators["q"].input_rate == 0.0
    nothing = observe_application({}, [executor("1"), executor("2")], core_seconds=10, time_s=10, interval_s=10)
    assert nothing.parallelism == {NO_QUERY: 2}


def test_partitions_cap_the_executors_that_are_of_use():
    graph = application_graph(("q", "r"), 1, {"q": 3})
    assert (graph["q"].max_parallelism, graph["r"].max_parallelism) == (3, None)
    assert application_graph((), 1, {}).names == (NO_QUERY,)


PROGRESS = {
    "runId": "r",
    "batchId": 3,
    "timestamp": "2026-11-15T20:00:00.000Z",
    "numInputRows": 50,
    "durationMs": {"triggerExecution": 1500},
    "stateOperators": [{"memoryUsedBytes": 10}, {"memoryUsedBytes": 5}],
    "sources": [],
}


def test_progress_of_any_source_is_read():
    found = read_batch(PROGRESS)
    assert (found.batch_id, found.total_records, found.duration_s, found.state_bytes) == (3, 50, 1.5, 15.0)


@pytest.mark.parametrize(
    ("source", "lag"),
    [
        ({"endOffset": {"offset": 10}, "latestOffset": {"offset": 25}}, 15),
        ({"endOffset": 10, "latestOffset": 12}, 2),
        ({"endOffset": {"logOffset": 1}, "latestOffset": None}, None),
        (
            {
                "endOffset": {"t": {"0": 5, "1": 6}},
                "latestOffset": {"t": {}},
                "metrics": {"avgOffsetsBehindLatest": "7.5"},
            },
            15,
        ),
        ({}, None),
    ],
)
def test_lag_is_known_where_a_source_tells(source, lag):
    assert read_lag({**PROGRESS, "sources": [source]}) == lag


class Wants:
    def __init__(self, **wish):
        self.wish = wish

    def decide(self, observation, memory):
        return Decision(parallelism=self.wish, reason="wants 1") if self.wish else Decision.hold("holds 1"), {"seen": 1}


def seen(time_s, **metrics):
    return Observation(time_s=time_s, interval_s=10, operators={"q": OperatorMetrics(parallelism=4, **metrics)})


def test_an_idle_application_goes_to_the_minimum_and_comes_back():
    policy = WhileIdle(inner=Wants(), idle_s=20, minimum=1)
    decision, memory = policy.decide(seen(10, input_rate=0.0), {})
    assert decision.is_hold
    decision, memory = policy.decide(seen(20, input_rate=0.0), memory)
    assert decision.parallelism == {"q": 1}
    assert "nothing arrived for 20 s" in decision.reason
    decision, memory = policy.decide(seen(30, input_rate=5.0), memory)
    assert decision.is_hold
    assert memory["inner"] == {"seen": 1}


def test_a_query_that_waits_with_work_before_it_is_not_idle():
    policy = WhileIdle(inner=Wants(), idle_s=10)
    decision, _ = policy.decide(seen(100, input_rate=0.0, lag=9), {})
    assert decision.is_hold


def test_an_objective_raises_the_wish_by_what_the_backlog_needs():
    # 100/s arrive and 300 wait; to be gone in 10 s that is 130/s; four executors do 80/s
    late = seen(10, latency_s=60.0, arrival_rate=100.0, lag=300.0, true_input_rate=80.0)
    decision, _ = WithObjective(inner=Wants(q=5), latency_s=10).decide(late, {})
    assert decision.parallelism == {"q": 7}
    assert "objective of 10 s: q 7 because it is 60.0 s behind" in decision.reason


def test_an_objective_that_is_met_changes_nothing_and_one_without_figures_at_most_doubles():
    on_time, _ = WithObjective(inner=Wants(), latency_s=10).decide(seen(10, latency_s=9.0), {})
    assert on_time.is_hold
    unknown, _ = WithObjective(inner=Wants(), latency_s=10).decide(seen(10, latency_s=900.0), {})
    assert unknown.parallelism == {"q": 8}
