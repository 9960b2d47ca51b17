"""Attaching, as far as it needs no Spark: objectives, idleness, what an application looks like, what is released."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import BadInputError
from sluice.model import Observation, OperatorMetrics, Recommendation
from sluice.protocol import decides_during_cooldown
from sluice.spark.attach.application import (
    BOUND_BY_TASKS,
    NO_QUERY,
    ExecutorInfo,
    application_graph,
    choose_to_remove,
    observe_application,
    useful_executors,
)
from sluice.spark.attach.objective import Objective
from sluice.spark.attach.observer import QueryObserver, QueryStatus
from sluice.spark.attach.wrappers import HEADROOM, IdleRelease, LatencyObjective, SharedExecutors
from sluice.spark.observe.events import Batch, BatchStage, read_batch, read_lag


@pytest.mark.parametrize(
    ("text", "latency_s"),
    [
        ("latency<30s", 30),
        (" latency <= 1.5 s ", 1.5),
        ("latency<500ms", 0.5),
        ("latency<2min", 120),
        ("latency<30", 30),
    ],
)
def test_an_objective_is_read(text, latency_s):
    assert Objective.parse(text).latency_s == latency_s


@pytest.mark.parametrize("text", ["fast", "latency<soon", "latency>30s", "latency<0s", "throughput<3s", "", 30, None])
def test_an_objective_that_says_nothing_is_refused_by_its_words(text):
    with pytest.raises(BadInputError, match="objective"):
        Objective.parse(text)


def executor(name, *, tasks=0, blocks=False, added_s=0.0, cores=1):
    return ExecutorInfo(executor_id=name, cores=cores, active_tasks=tasks, holds_blocks=blocks, added_s=added_s)


def test_busy_executors_and_those_with_blocks_are_released_last():
    here = [
        executor("busy", tasks=1),
        executor("holds", blocks=True),
        executor("old", added_s=1),
        executor("young", added_s=2),
    ]
    assert [e.executor_id for e in choose_to_remove(here, 4)] == ["young", "old", "holds", "busy"]


def batch(number, started_s, ended_s, records, lag=None, **facts):
    return Batch(
        run_id="r",
        batch_id=number,
        started_s=started_s,
        ended_s=ended_s,
        records=records,
        state_bytes=7.0,
        lag_records=lag,
        **facts,
    )


def stage(batch_id, *, tasks=4, run_s=10.0, cpu_s=8.0, repeated=False):
    return BatchStage(
        run_id="r",
        batch_id=batch_id,
        tasks=tasks,
        run_s=run_s,
        cpu_s=cpu_s,
        input_records=0,
        output_records=0,
        output_bytes=0,
        repeated=repeated,
    )


FIRST = batch(-1, -10, 0, 1)
"""The first batch with records, behind which windows begin."""


def watch(batches=(), stages=(), *, now_s=10.0, cores=1, in_batch=False, tasks=None, trigger_s=None, before=FIRST):
    """The window of these batches, from the end of the one before until now."""
    observer = QueryObserver("r", trigger_s, -10.0)
    if before is not None:
        observer.add([before], [stage(before.batch_id)])
        began = QueryStatus(now_s=before.ended_s, in_batch=True)
        observer.close_window(began, [], [(-100.0, cores)])
    observer.add(batches, stages)
    status = QueryStatus(now_s=now_s, in_batch=in_batch, running_tasks=tasks)
    return lambda executors: observer.close_window(status, executors, [(-100.0, cores)])


def observe(closed, executors):
    windows = {"q": closed(executors)}
    return observe_application(windows, executors, time_s=10.0, interval_s=10.0).operators["q"]


def test_a_query_is_busy_by_the_task_time_it_used():
    # two executors of two cores for 10 s: 40 core-seconds, 10 of them used for 1000 records
    done = [batch(0, 0, 5, 400), batch(1, 5, 10, 600)]
    stages = [stage(0, run_s=4.0, cpu_s=3.0), stage(1, run_s=6.0, cpu_s=5.0)]
    seen = observe(watch(done, stages, cores=4), [executor("1", cores=2), executor("2", cores=2)])
    assert (seen.parallelism, seen.input_rate, seen.busy, seen.cpu) == (2, 100.0, 0.25, 0.2)
    assert seen.true_input_rate == 400.0
    # half of the 5 s between batches, and the 5 s of its own
    assert seen.latency_s == pytest.approx(7.5)
    assert seen.state_bytes == 7.0


def test_what_spark_does_not_tell_stays_unknown():
    seen = observe(watch([batch(0, 0, 10, 1000)], [stage(0)]), [executor("1")])
    assert (seen.lag, seen.lag_rate, seen.backpressure, seen.idle) == (None, None, None, None)
    assert (seen.output_rate, seen.true_output_rate, seen.net_rate) == (None, None, None)
    assert (seen.busy, seen.latency_s) == (1.0, pytest.approx(15.0))


def test_output_is_known_where_the_sink_counts_it():
    seen = observe(watch([batch(0, 0, 10, 1000, output_records=50)], [stage(0, run_s=5.0)]), [executor("1")])
    assert (seen.output_rate, seen.true_output_rate) == (5.0, 10.0)


def test_what_executors_are_worth_counts_those_there_now_not_those_of_the_window():
    # one core did 1000 records in 10 s; by now there are four
    seen = observe(watch([batch(0, 0, 10, 1000)], [stage(0)]), [executor(str(n)) for n in range(4)])
    assert (seen.busy, seen.true_input_rate) == (1.0, 400.0)


def test_a_query_that_waits_between_its_batches_could_do_more_than_its_task_time_tells():
    # two cores; 100 records took 10 s of task time in a hundred small tasks, but only 2 of 10 s
    waits = observe(watch([batch(0, 0, 2, 100)], [stage(0)], cores=2), [executor("1"), executor("2")])
    assert waits.true_input_rate == pytest.approx(50.0)
    # one after the other, there is nothing but the task time to go by
    never_waits = observe(watch([batch(0, 0, 10, 100)], [stage(0)], cores=2), [executor("1"), executor("2")])
    assert never_waits.true_input_rate == pytest.approx(20.0)


def test_a_batch_that_lost_an_executor_tells_how_late_it_was_but_not_what_executors_are_worth():
    # of 40 core-seconds the last attempt of its stage, which did only what was lost, shows one
    seen = observe(watch([batch(0, 0, 10, 2000)], [stage(0, run_s=1.0, repeated=True)], cores=4), [executor("1")])
    assert (seen.true_input_rate, seen.busy, seen.input_rate, seen.arrival_rate) == (None, None, None, None)
    assert (seen.batch_s, seen.latency_s) == (10.0, pytest.approx(15.0))


def test_without_a_lag_the_next_batch_tells_what_arrived_during_the_one_before():
    # a batch of 10 s, and the next has 3000 records: 300/s came while 100/s were done
    seen = observe(
        watch([batch(1, 10, 40, 3000)], [stage(1)], before=batch(0, 0, 10, 1000), now_s=40.0), [executor("1")]
    )
    assert (seen.input_rate, seen.arrival_rate, seen.lag_rate) == (100.0, 300.0, None)


def test_lag_makes_records_late_and_tells_what_arrived():
    last = batch(1, 10, 20, 1000, lag=500)
    seen = observe(watch([last], [stage(1)], before=batch(0, 0, 10, 1000, lag=300), now_s=20.0), [executor("1")])
    assert (seen.lag, seen.lag_rate, seen.arrival_rate) == (500, 20.0, 120.0)
    assert seen.latency_s == pytest.approx(5 + 10 + 5)


def test_behind_a_lag_that_nobody_reads_the_latency_is_unknown():
    assert observe(watch([batch(0, 0, 10, 0, lag=500)]), [executor("1")]).latency_s is None


def test_a_batch_longer_than_the_window_shows_by_its_running_tasks_and_its_age():
    window = watch(in_batch=True, tasks=3, before=batch(0, -9, -5, 1))
    busy = observe(window, [executor("1", cores=4)])
    assert (busy.busy, busy.input_rate, busy.latency_s) == (0.75, None, 15.0)


def test_while_a_batch_runs_the_window_ends_with_the_one_before_and_the_next_begins_there():
    observer = QueryObserver("r", None, -10.0)
    observer.add([FIRST, batch(0, 0, 4, 100)], [stage(0)])
    here, cores = [executor("1")], [(-100.0, 1)]
    window = observer.close_window(QueryStatus(now_s=10.0, in_batch=True), here, cores)
    assert (window.span.began_s, window.span.ended_s) == (0, 4)
    observer.add([batch(1, 4, 15, 100)], [stage(1)])
    window = observer.close_window(QueryStatus(now_s=20.0, in_batch=False), here, cores)
    assert (window.span.began_s, window.span.ended_s) == (4, 20.0)


def test_the_first_batch_with_records_says_nothing():
    first = [batch(0, 0, 1, 0), batch(1, 1, 9, 1000)]
    for in_batch in (False, True):
        cold = observe(watch(first, [stage(1)], before=None, in_batch=in_batch, tasks=1), [executor("1")])
        assert (cold.busy, cold.input_rate, cold.latency_s) == (None, None, None)


def test_an_idle_query_has_a_rate_of_zero_and_an_application_without_queries_is_known_by_its_executors():
    idle = observe(watch(), [executor("1")])
    assert (idle.input_rate, idle.arrival_rate, idle.busy, idle.output_rate) == (0.0, 0.0, 0.0, None)
    nothing = observe_application({}, [executor("1"), executor("2")], time_s=10, interval_s=10)
    assert nothing.parallelism == {NO_QUERY: 2}


def test_a_query_whose_trigger_is_not_due_is_not_idle():
    assert observe(watch(trigger_s=60.0), [executor("1")]).input_rate is None
    assert observe(watch(trigger_s=6.0), [executor("1")]).input_rate == 0.0


def test_a_query_with_records_before_it_is_not_idle():
    assert observe(watch(before=batch(0, -5, 0, 10, lag=3)), [executor("1")]).input_rate is None


@pytest.mark.parametrize(
    ("stages", "cores_each", "useful"),
    [
        ([], 1, None),
        ([(8, 10.0)], 1, 8),
        ([(8, 10.0)], 4, 2),
        ([(9, 10.0)], 4, 3),
        # two hundred empty shuffle tasks beside three that work
        ([(3, 10.0), (200, 0.5)], 1, 3),
    ],
)
def test_executors_are_of_use_up_to_the_tasks_of_a_stage_that_takes_time(stages, cores_each, useful):
    found = [stage(0, tasks=tasks, run_s=run_s) for tasks, run_s in stages]
    assert useful_executors(found, cores_each) == useful


def test_partitions_cap_the_executors_that_are_of_use():
    capped = application_graph(("q",), 1, {"q": 3})["q"]
    assert (capped.max_parallelism, capped.bound_by) == (3, BOUND_BY_TASKS)
    both = application_graph(("q", "r"), 1, {"q": 3, "r": 2})
    assert (both["q"].max_parallelism, both["r"].max_parallelism) == (5, 5)
    assert application_graph(("q", "r"), 1, {"q": 3})["q"].max_parallelism is None
    assert application_graph((), 1, {}).names == (NO_QUERY,)


PROGRESS = {
    "runId": "r",
    "batchId": 3,
    "timestamp": "2026-11-15T20:00:00.000Z",
    "numInputRows": 50,
    "durationMs": {"triggerExecution": 1500, "addBatch": 1000},
    "stateOperators": [{"memoryUsedBytes": 10}, {"memoryUsedBytes": 5}],
    "sources": [{"numInputRows": 30, "endOffset": {"logOffset": 1}}, {"numInputRows": 20, "endOffset": None}],
    "sink": {"numOutputRows": 7},
}


def test_progress_of_any_source_is_read():
    found = read_batch(PROGRESS)
    assert (found.batch_id, found.records, found.duration_s, found.state_bytes) == (3, 50, 1.5, 15.0)
    assert (found.lag_records, found.output_records, found.state_io_bytes) == (None, 7, None)


@pytest.mark.parametrize(
    ("source", "lag"),
    [
        ({"endOffset": {"offset": 10}, "latestOffset": {"offset": 25}}, 15),
        ({"endOffset": 10, "latestOffset": 12}, 2),
        ({"endOffset": {"logOffset": 1}, "latestOffset": None}, None),
        ({"endOffset": {"t": {"0": 5, "1": 6}}, "latestOffset": {"t": {"0": 9, "1": 6, "2": 3}}}, 7),
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


def test_a_lag_that_one_of_two_sources_does_not_tell_is_unknown():
    counts, files = {"endOffset": 10, "latestOffset": 12}, {"endOffset": {"logOffset": 1}, "latestOffset": None}
    assert read_lag({**PROGRESS, "sources": [counts, counts]}) == 4
    assert read_lag({**PROGRESS, "sources": [counts, files]}) is None
    assert read_lag({**PROGRESS, "sources": []}) is None


class Wants:
    def __init__(self, **counts):
        self.counts = counts

    def decide(self, observation, memory):
        return Recommendation(parallelism=self.counts, reason="wants 1") if self.counts else Recommendation.hold(
            "holds 1"
        ), {"seen": 1}


def seen(time_s, **metrics):
    return Observation(time_s=time_s, interval_s=10, operators={"q": OperatorMetrics(parallelism=4, **metrics)})


class Spy:
    def decide(self, observation, memory):
        self.seen = observation.operators
        return Recommendation.hold("looks"), {"mine": 1}


def mix(**queries):
    operators = {name: OperatorMetrics(parallelism=4, **metrics) for name, metrics in queries.items()}
    return Observation(time_s=10, interval_s=10, operators=operators)


def test_each_of_several_queries_is_shown_what_executors_do_for_it_beside_the_others():
    spy = Spy()
    # 4 executors: a reads 160/s in 0.4 of the slots, b 100/s in half of them
    a = {"busy": 0.4, "cpu": 0.2, "input_rate": 160.0, "true_input_rate": 400.0}
    _, memory = SharedExecutors(inner=spy).decide(
        mix(a=a, b={"busy": 0.5, "input_rate": 100.0, "true_input_rate": 200.0}), {}
    )
    assert spy.seen["a"].busy == spy.seen["b"].busy == pytest.approx(0.9)
    assert spy.seen["a"].cpu == pytest.approx(0.45)
    assert spy.seen["a"].true_input_rate == pytest.approx(160 / 0.9)
    assert spy.seen["b"].true_input_rate == pytest.approx(100 / 0.9)
    # the share of a batch that is not over yet is the last that was known
    SharedExecutors(inner=spy).decide(mix(a=a, b={}), memory)
    assert spy.seen["a"].busy == pytest.approx(0.9)
    assert spy.seen["b"].busy is None


def test_other_jobs_are_part_of_the_mix():
    spy = Spy()
    half = mix(a={"busy": 0.4, "input_rate": 160.0, "true_input_rate": 400.0})
    SharedExecutors(inner=spy).decide(half.model_copy(update={"other_busy": 0.4}), {})
    assert spy.seen["a"].busy == pytest.approx(0.8)
    assert spy.seen["a"].true_input_rate == pytest.approx(200.0)
    # a query whose batches work in threads of their own
    hidden = mix(a={"busy": 0.0, "input_rate": 160.0})
    SharedExecutors(inner=spy).decide(hidden.model_copy(update={"other_busy": 0.8}), {})
    assert (spy.seen["a"].busy, spy.seen["a"].true_input_rate) == (0.8, 200.0)


def test_a_query_alone_and_one_that_is_idle_are_shown_as_they_are():
    spy = Spy()
    alone = mix(a={"busy": 0.4, "input_rate": 160.0, "true_input_rate": 400.0})
    SharedExecutors(inner=spy).decide(alone, {})
    assert spy.seen == alone.operators
    SharedExecutors(inner=spy).decide(mix(a={"busy": 0.0, "input_rate": 0.0}, b={"busy": 0.5}), {})
    assert (spy.seen["a"].busy, spy.seen["a"].input_rate) == (0.0, 0.0)


def test_an_idle_application_goes_to_the_minimum_and_comes_back():
    policy = IdleRelease(inner=Wants(), idle_s=20, minimum=1)
    decision, memory = policy.decide(seen(10, input_rate=0.0), {})
    assert decision.is_hold
    decision, memory = policy.decide(seen(20, input_rate=0.0), memory)
    assert decision.parallelism == {"q": 1}
    assert "nothing arrived for 20 s" in decision.reason
    decision, memory = policy.decide(seen(30, input_rate=5.0), memory)
    assert decision.is_hold
    assert {name: value for name, value in memory.items() if name != "@idle"} == {"seen": 1}


def test_an_application_with_other_jobs_is_not_idle():
    policy = IdleRelease(inner=Wants(), idle_s=10)
    quiet = seen(100, input_rate=0.0)
    assert not policy.decide(quiet, {})[0].is_hold
    decision, memory = policy.decide(quiet.model_copy(update={"other_busy": 0.0}), {})
    assert decision.is_hold
    assert memory["@idle"] == {"since_s": None}


def test_a_query_in_a_batch_of_which_nothing_is_known_yet_is_not_idle():
    policy = IdleRelease(inner=Wants(), idle_s=10)
    # between two stages no task runs, and the batch is longer than its window
    between = seen(100, busy=0.0, latency_s=4.0)
    assert policy.decide(between.model_copy(update={"at_work": True}), {})[0].is_hold
    assert not policy.decide(between, {})[0].is_hold
    # a timer's empty batches are work, too, but nothing arrived
    empty = seen(100, input_rate=0.0).model_copy(update={"at_work": True})
    assert not policy.decide(empty, {})[0].is_hold


def test_a_query_that_waits_with_work_before_it_is_not_idle():
    policy = IdleRelease(inner=Wants(), idle_s=10)
    decision, _ = policy.decide(seen(100, input_rate=0.0, lag=9), {})
    assert decision.is_hold


def test_an_objective_raises_the_wish_by_what_the_backlog_needs():
    # 100/s arrive and 300 wait; to be gone in 10 s that is 130/s; four executors do 80/s
    late = seen(10, latency_s=60.0, arrival_rate=100.0, lag=300.0, true_input_rate=80.0)
    decision, _ = LatencyObjective(inner=Wants(q=5), latency_s=10).decide(late, {})
    assert decision.parallelism == {"q": 7}
    assert "objective of 10 s: q 7 because it is 60.0 s behind" in decision.reason


def test_an_objective_that_is_met_changes_nothing_and_one_without_figures_at_most_doubles():
    on_time, _ = LatencyObjective(inner=Wants(), latency_s=10).decide(seen(10, latency_s=9.0), {})
    assert on_time.is_hold
    unknown, _ = LatencyObjective(inner=Wants(), latency_s=10).decide(seen(10, latency_s=900.0), {})
    assert unknown.parallelism == {"q": 8}


def test_an_objective_is_planned_for_before_it_is_missed():
    # 320/s arrive, an executor does 100/s; a batch takes 1 s beside its records, and four would settle at 5 s
    busy = seen(10, latency_s=3.0, batch_s=2.0, input_rate=200.0, arrival_rate=320.0, true_input_rate=400.0)
    decision, _ = LatencyObjective(inner=Wants(q=4), latency_s=10).decide(busy, {})
    assert decision.parallelism == {"q": 5}
    assert "q 5 because batches that take 1.0 s beside their records leave 79% of them for 320 rec/s" in decision.reason


def test_one_slow_batch_is_no_reason_and_a_fixed_time_above_the_objective_neither():
    policy = LatencyObjective(inner=Wants(q=4), latency_s=10)
    rates = {"arrival_rate": 200.0, "true_input_rate": 400.0}
    _, memory = policy.decide(seen(10, batch_s=2.0, input_rate=200.0, **rates), {})
    slow, _ = policy.decide(seen(20, batch_s=7.0, input_rate=200.0, **rates), memory)
    assert slow.parallelism == {"q": 4}
    hopeless, _ = policy.decide(seen(10, batch_s=9.0, input_rate=100.0, **rates), {})
    assert hopeless.parallelism == {"q": 4}


def settled_latency_s(fixed_s, trigger_s, utilisation):
    """By letting batches follow each other, each reading what arrived since the one before began."""
    batch_s = fixed_s
    for _ in range(20_000):
        batch_s = fixed_s + utilisation * max(batch_s, trigger_s)
    return max(batch_s, trigger_s) / 2 + batch_s


@given(
    fixed_s=st.floats(0.1, 3.0),
    trigger_s=st.sampled_from([0.0, 1.0, 5.0, 12.0]),
    arrival=st.floats(1.0, 1000.0),
    objective_s=st.floats(5.0, 60.0),
)
def test_the_planned_number_is_the_smallest_that_settles_within_the_objective(fixed_s, trigger_s, arrival, objective_s):
    aim_s = HEADROOM * objective_s
    batch_s = fixed_s + 0.5
    input_rate = 400.0 * 0.5 / max(batch_s, trigger_s)
    metrics = {"batch_s": batch_s, "input_rate": input_rate, "arrival_rate": arrival, "true_input_rate": 400.0}
    policy = LatencyObjective(inner=Wants(q=1), latency_s=objective_s)
    needed = policy.decide(seen(10, batch_interval_s=trigger_s or None, **metrics), {})[0].parallelism["q"]

    def latency_over_aim(count):
        return settled_latency_s(fixed_s, trigger_s, arrival / (100.0 * count)) / aim_s

    if needed == 1:
        assert latency_over_aim(1) < 1 + 1e-6 or settled_latency_s(fixed_s, trigger_s, 0.0) > aim_s * (1 - 1e-6)
    else:
        assert latency_over_aim(needed) < 1 + 1e-6
        assert latency_over_aim(needed - 1) > 1 - 1e-6


def test_a_long_trigger_makes_idleness_longer():
    policy = IdleRelease(inner=Wants(), idle_s=10)
    _, memory = policy.decide(seen(10, input_rate=0.0, batch_interval_s=60), {})
    decision, memory = policy.decide(seen(100, input_rate=0.0, batch_interval_s=60), memory)
    assert decision.is_hold
    decision, _ = policy.decide(seen(120, input_rate=0.0, batch_interval_s=60), memory)
    assert decision.parallelism == {"q": 1}


def test_what_wraps_a_policy_passes_on_when_it_wants_to_be_asked():
    class Patient(Wants):
        decides_during_cooldown = False

    for inner, asked in ((Wants(), True), (Patient(), False)):
        wrapped = IdleRelease(inner=LatencyObjective(inner=inner, latency_s=1), idle_s=1)
        assert decides_during_cooldown(wrapped) is asked
