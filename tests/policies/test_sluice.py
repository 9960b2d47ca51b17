"""Stories of sluice's own policy, on the simulator: what it does, and what it leaves alone."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.journal.file import MemoryJournal
from sluice.lab.run import THESIS_GUARDS
from sluice.lab.simulator import (
    Capacity,
    CapacityTable,
    Linear,
    PowerLaw,
    SimulatedEngine,
    SimulatedJob,
    SimulatedOperator,
    SimulatorSettings,
    chain,
)
from sluice.lab.summary import Summary, summarise
from sluice.model import ActionCost, Observation, OperatorMetrics, Target
from sluice.policies.ds2 import Ds2
from sluice.policies.sluice import Sluice
from sluice.protocol import EMPTY_MEMORY, Policy
from sluice.registry import build
from tests.policies.jobs import decisions, job

RESTARTS = SimulatorSettings(rescale="job", downtime_s=45.0, busy_ceiling=0.8, noise=0.05)
LIVE = SimulatorSettings(busy_ceiling=0.8, noise=0.05)


def played(
    policy: Policy,
    load,
    *,
    settings: SimulatorSettings = RESTARTS,
    sink: Capacity | None = None,
    minutes: int = 60,
    initial: int = 4,
) -> tuple[Summary, MemoryJournal]:
    """Source, map and sink, of which one instance each takes 100,000, 60,000 and 80,000 rec/s."""
    operators = (
        SimulatedOperator(name="source", capacity=Linear(100_000.0)),
        SimulatedOperator(name="map", capacity=PowerLaw(60_000.0, 0.9)),
        SimulatedOperator(name="sink", capacity=sink or Linear(80_000.0)),
    )
    simulated = SimulatedJob(operators=operators, edges=chain("source", "map", "sink"), settings=settings)
    engine = SimulatedEngine(simulated, {"source": load}, seed=1)
    journal = MemoryJournal()
    guards = build(Guards, {**THESIS_GUARDS, "cooldown_s": 300.0 if settings.downtime_s else 0.0}, "guards")
    Loop(engine=engine, decider=Decider(policy), journal=journal, guards=guards).run(
        Target(parallelism=dict.fromkeys(("source", "map", "sink"), initial)), duration_s=60 * minutes, interval_s=15
    )
    reports = journal.reports()
    assert not [report.cycle.problem for report in reports if report.cycle.problem]
    return summarise(reports, journal.end(), 30.0), journal


def constant(rate):
    return lambda times_s: np.full(len(times_s), rate)


def wave(times_s):
    return 250_000 + 150_000 * np.sin(times_s / 600)


def step(times_s):
    return np.where(times_s < 1200, 100_000.0, 300_000.0)


def test_a_constant_load_is_settled_in_two_actions_and_then_left_alone():
    summary, journal = played(Sluice(), constant(200_000.0), initial=12)
    acted = [report.cycle.time_s for report in journal.reports() if report.result.is_action]
    assert 1 <= len(acted) <= 2
    assert acted[-1] < 900
    assert summary.slo_violation_ratio < 0.05
    last = journal.reports()[-1].cycle.target.parallelism
    assert last["source"] in (2, 3)
    assert last["map"] in (4, 5, 6)
    assert last["sink"] in (3, 4)


def test_on_a_wave_it_is_rarely_late_where_ds2_mostly_is():
    ours, theirs = played(Sluice(), wave, minutes=120)[0], played(Ds2(), wave, minutes=120)[0]
    assert ours.slo_violation_ratio < 0.15 < 0.9 < theirs.slo_violation_ratio
    assert ours.avg_slots < 1.5 * theirs.avg_slots
    assert ours.rescales <= theirs.rescales


def test_where_actions_are_free_it_follows_closely():
    summary, _ = played(Sluice(), wave, settings=LIVE, minutes=120)
    needed = 250_000 / 100_000 + (250_000 / 60_000) ** (1 / 0.9) + 250_000 / 80_000
    assert summary.avg_slots < 1.25 * needed
    assert summary.slo_violation_ratio < 0.03


def test_a_jump_is_answered_within_two_windows():
    _, journal = played(Sluice(), step, minutes=30)
    grown = [r.cycle.time_s for r in journal.reports() if r.result.is_action and r.cycle.time_s > 1200]
    assert grown[0] <= 1230


def test_a_slow_system_behind_the_sink_gets_no_endless_instances():
    """Whatever the number of sinks, 150,000 of 250,000 rec/s are taken."""
    flat = CapacityTable({1: 75_000.0, 2: 150_000.0, 100: 150_100.0})
    summary, journal = played(Sluice(), constant(250_000.0), sink=flat, minutes=90)
    last = journal.reports()[-1].cycle
    assert summary.max_slots <= 60
    assert last.target.slots <= 30
    assert "do not help" in last.recommendation.reason or "cooldown" in last.recommendation.reason


def test_nothing_arrives_and_one_instance_each_is_left():
    """At once where waking it costs nothing; where it is restarted, once idling has cost as much."""
    _, live = played(Sluice(), constant(0.0), settings=LIVE, minutes=5)
    _, restarted = played(Sluice(), constant(0.0), minutes=60)
    for journal in (live, restarted):
        assert set(journal.reports()[-1].cycle.target.parallelism.values()) == {1}


def test_reasons_have_numbers_and_name_what_would_change_them():
    _, journal = played(Sluice(), step, minutes=30, initial=8)
    acted = {report.result.is_action: set() for report in journal.reports()}
    for report in journal.reports():
        acted[report.result.is_action].add(report.cycle.recommendation.reason)
    assert all("carry" in reason and ("would have" in reason) for reason in acted[True])
    changes = ("a change pays once it saves more than", "slots pay best in", "s left", "waits up to")
    assert all(any(change in reason for change in changes) for reason in acted[False])


def test_a_cooldown_is_not_argued_with():
    seen = job(
        source={
            "parallelism": 2,
            "input_rate": 100.0,
            "busy": 0.9,
            "arrival_rate": 400.0,
            "lag": 9e4,
            "lag_rate": 300.0,
        }
    )
    cooling = seen.model_copy(update={"action_cost": ActionCost(cooldown_s=300.0, cooling_s=120.0)})
    assert "120 s left" in decisions(Sluice(), [cooling])[0].reason
    assert decisions(Sluice(), [seen])[0].parallelism["source"] > 2


def missing(observation: Observation, chance: random.Random) -> Observation:
    def thinned(metrics):
        fields = [name for name in type(metrics).model_fields if name != "parallelism" and chance.random() < 0.3]
        return metrics.model_copy(update=dict.fromkeys(fields))

    operators = {name: thinned(metrics) for name, metrics in observation.operators.items()}
    return observation.model_copy(update={"operators": operators})


class Thinned(Sluice):
    """A third of all metrics never reaches it."""

    def decide(self, observation, memory):
        return super().decide(missing(observation, random.Random(observation.time_s)), memory)


def test_missing_metrics_cost_little():
    whole, thinned = played(Sluice(), wave, minutes=120)[0], played(Thinned(), wave, minutes=120)[0]
    assert thinned.slo_violation_ratio < whole.slo_violation_ratio + 0.08
    assert thinned.avg_slots < 1.3 * whole.avg_slots


def test_what_is_remembered_stops_growing():
    """Also where operators come and go under new names, as queries of an application may for months."""
    sizes = []
    memory, policy = EMPTY_MEMORY, Sluice()
    for number in range(2000):
        rate = 100.0 + 50 * (number % 7)
        lag = 9000.0 * (number % 11)
        one = {"input_rate": rate, "output_rate": rate, "busy": rate / 500, "backpressure": 0.2, "buffer_usage": 0.3}
        read = {"arrival_rate": rate + lag / 60, "lag": lag, "lag_rate": lag / 60}
        seen = job(
            f"read{number // 20}>write{number // 20}",
            time_s=60.0 * number + 60,
            interval_s=60.0,
            **{
                f"read{number // 20}": {"parallelism": 1 + number // 5 % 9, **one, **read},
                f"write{number // 20}": {"parallelism": 1 + number // 3 % 7, **one},
            },
        )
        _, memory = policy.decide(seen, memory)
        if number % 500 == 499:
            sizes.append(len(json.dumps(memory)))
    assert sizes[-1] < 1.1 * sizes[1]
    assert sizes[-1] < 20_000


@pytest.mark.parametrize(
    ("settings", "quoted"),
    [({"objective_s": 0.0}, "got 0.0"), ({"late_price": -1.0}, "got -1"), ({"caution": 10}, "10")],
)
def test_parameters_out_of_range_are_quoted(settings, quoted):
    with pytest.raises(ValueError, match=quoted):
        Sluice(**settings)


def test_a_source_that_never_tells_its_lag_is_behind_by_its_latency() -> None:
    """Files read as a whole: no lag is known, a batch of what came meanwhile takes longer every time."""
    memory = EMPTY_MEMORY
    on_time = {"input_rate": 11.0, "true_input_rate": 28.0, "busy": 0.4, "arrival_rate": 10.0, "latency_s": 1.5}
    step = {"input_rate": 63.0, "true_input_rate": 83.0, "busy": 0.75, "arrival_rate": 163.0, "latency_s": 3.3}
    # one batch after the other is longer than the window, and of those nothing is known but their age
    windows = [*[on_time] * 5, step, *[{"busy": 1.0, "latency_s": 2.0 * number} for number in range(1, 20)]]
    recommended = []
    for number, metrics in enumerate(windows):
        operator = OperatorMetrics(parallelism=1, batch_interval_s=1.0, **metrics)
        observation = Observation(
            time_s=2.0 * (number + 1),
            interval_s=2.0,
            operators={"counts": operator},
            action_cost=ActionCost(start_s=1.0, cooldown_s=4.0),
        )
        recommendation, memory = Sluice().decide(observation, memory)
        recommended.append(recommendation.parallelism.get("counts", 1))
    assert recommended[:5] == [1] * 5
    assert recommended[-1] >= 3, "it waits for ever for a better moment"


def in_batches(number: int, parallelism: int, **metrics: float) -> Observation:
    """A window of a query whose tasks cost something, however few their records; one slot does 100 rec/s."""
    operator = OperatorMetrics(parallelism=parallelism, batch_interval_s=1.0, latency_s=1.0, lag=0.0, **metrics)
    cost = ActionCost(start_s=5.0, cooldown_s=4.0)
    return Observation(time_s=10.0 * number, interval_s=10.0, operators={"counts": operator}, action_cost=cost)


def test_what_an_idle_query_shows_is_no_capacity() -> None:
    quiet = {"input_rate": 8.0, "true_input_rate": 24.0, "busy": 0.33, "arrival_rate": 8.0}
    rising = {"input_rate": 16.0, "true_input_rate": 36.0, "busy": 0.44, "arrival_rate": 16.0}
    busy = {"input_rate": 80.0, "true_input_rate": 95.0, "busy": 0.84, "arrival_rate": 80.0}
    windows = [*[quiet] * 12, *[rising] * 4, *[busy] * 4]
    made = decisions(Sluice(), [in_batches(number + 1, 1, **seen) for number, seen in enumerate(windows)])
    assert all(one.parallelism.get("counts", 1) == 1 for one in made[:16]), [one.reason for one in made[:16]]
    assert "carry at least" in made[15].reason
    assert "at least" not in made[-1].reason
    assert 1 <= made[-1].parallelism.get("counts", 1) <= 2, made[-1].reason


def test_what_an_idle_query_shows_is_enough_to_shrink() -> None:
    quiet = {"input_rate": 20.0, "true_input_rate": 400.0, "busy": 0.05, "arrival_rate": 20.0}
    made = decisions(Sluice(), [in_batches(number + 1, 8, **quiet) for number in range(20)])
    assert any(one.parallelism.get("counts", 8) == 1 for one in made), made[-1].reason


def test_an_operator_with_hardly_anything_to_do_gives_its_instances_back() -> None:
    """A sink behind a filter: a window in which it worked for a millisecond measures nothing, and is telling enough."""
    source = {
        "parallelism": 2,
        "input_rate": 900.0,
        "output_rate": 0.02,
        "busy": 0.8,
        "arrival_rate": 900.0,
        "lag": 0.0,
    }
    sink = {"parallelism": 10, "input_rate": 0.02, "output_rate": 0.02, "busy": 0.00005}
    cost = ActionCost(downtime_s=30.0, cooldown_s=60.0)
    seen = [
        job("source>sink", time_s=15.0 * number, source=source, sink=sink).model_copy(update={"action_cost": cost})
        for number in range(1, 40)
    ]
    assert any(one.parallelism.get("sink", 10) < 10 for one in decisions(Sluice(), seen))


def test_who_is_behind_believes_the_least_it_has_seen() -> None:
    quiet = {"input_rate": 8.0, "true_input_rate": 24.0, "busy": 0.33, "arrival_rate": 8.0}
    windows = [in_batches(number + 1, 1, **quiet) for number in range(12)]
    behind = OperatorMetrics(parallelism=1, batch_interval_s=1.0, busy=1.0, arrival_rate=100.0, lag=4000.0)
    last = windows[-1].model_copy(update={"time_s": 130.0, "operators": {"counts": behind}})
    assert decisions(Sluice(), [*windows, last])[-1].parallelism["counts"] > 1


def first_rest(cost: ActionCost, *, worked: bool) -> float:
    """Seconds without load after which a job of three instances each is made to rest."""
    at_work = {"parallelism": 3, "input_rate": 150.0, "output_rate": 150.0, "busy": 0.5, "backpressure": 0.0}
    silent = at_work | {"input_rate": 0.0, "output_rate": 0.0, "busy": 0.0}
    windows = [at_work | {"arrival_rate": 150.0, "lag": 0.0}] * 8 if worked else []
    windows += [silent | {"arrival_rate": 0.0, "lag": 0.0}] * 300
    seen = [
        Observation(
            time_s=15.0 * (number + 1),
            interval_s=15.0,
            operators={"source": OperatorMetrics(**metrics)},
            action_cost=cost,
        )
        for number, metrics in enumerate(windows)
    ]
    made = decisions(Sluice(), seen)
    return 15.0 * (next(n for n, one in enumerate(made) if "nothing arrived in" in one.reason) + 1 - 8 * worked)


def test_a_job_rests_once_idling_has_cost_what_waking_it_will() -> None:
    free, restart = ActionCost(downtime_s=0.0), ActionCost(downtime_s=40.0, cooldown_s=300.0)
    assert first_rest(free, worked=True) == 60.0
    assert first_rest(restart, worked=True) == 240.0, "40 s late at five times the price, and 40 s of slots"
    assert first_rest(restart, worked=False) == 240.0, "who knows no capacity does not wait for longer"


def test_a_jump_after_a_rest_does_not_look_like_a_blocked_job() -> None:
    """The source waits for a map that is full: idle windows before it would make that a map that is seldom at work."""
    rest = {"parallelism": 1, "input_rate": 0.0, "output_rate": 0.0, "busy": 0.0, "backpressure": 0.0}
    full = {"parallelism": 1, "input_rate": 450.0, "output_rate": 450.0}
    windows = [({**rest, "arrival_rate": 0.0}, rest)] * 6
    source = {**full, "busy": 0.4, "backpressure": 0.5, "arrival_rate": 2000.0, "lag": 23_000.0, "lag_rate": 1550.0}
    memory = EMPTY_MEMORY
    for number, (first, second) in enumerate([*windows, (source, {**full, "busy": 0.78, "backpressure": 0.0})]):
        seen = job("source>map", time_s=15.0 * (number + 1), source=first, map=second)
        _, memory = Sluice().decide(seen, memory)
    assert memory["blocking"]["slack"] == {}


def windows_of_a_query(
    parallelism: int, *, most_slots: int | None = None, **metrics: list[float | None]
) -> list[Observation]:
    """One batch per second; a cell that is None is a metric of which the window knows nothing."""
    return [
        Observation(
            time_s=3.0 * (number + 1),
            interval_s=3.0,
            operators={
                "counts": OperatorMetrics(
                    parallelism=parallelism, batch_interval_s=1.0, **dict(zip(metrics, values, strict=True))
                )
            },
            action_cost=ActionCost(downtime_s=0.0, start_s=3.0, cooldown_s=9.0, most_slots=most_slots),
        )
        for number, values in enumerate(zip(*metrics.values(), strict=True))
    ]


def test_a_job_that_is_too_small_already_does_not_put_off_becoming_larger():
    """200 rec/s arrive where 70 are carried: nothing that comes later makes that plan a better one."""
    seen = windows_of_a_query(
        1,
        input_rate=[*[30.0] * 10, 75.0],
        true_input_rate=[*[70.0] * 10, 80.0],
        busy=[*[0.45] * 10, 0.9],
        arrival_rate=[*[30.0] * 10, 200.0],
        latency_s=[*[1.2] * 10, 3.0],
    )
    made = decisions(Sluice(), seen)
    assert all(one.is_hold for one in made[:10])
    assert made[-1].parallelism.get("counts", 1) >= 3, made[-1].reason


def test_no_job_becomes_smaller_on_old_figures():
    """In a batch that is longer than the window nothing is told of the load: it may be what makes the batch long."""
    known = {"input_rate": 30.0, "true_input_rate": 300.0, "busy": 0.1, "arrival_rate": 30.0, "latency_s": 1.2}
    high = known | {"input_rate": 250.0, "arrival_rate": 250.0, "busy": 0.85}
    first = [high] * 10 + [known]
    rows = [*first, *[dict.fromkeys(known) | {"busy": 1.0, "latency_s": 2.0}] * 5]
    told = windows_of_a_query(3, **{name: [row[name] for row in [*first, *[known] * 5]] for name in known})
    untold = windows_of_a_query(3, **{name: [row[name] for row in rows] for name in known})
    assert any(one.parallelism.get("counts", 3) < 3 for one in decisions(Sluice(), told))
    assert all(one.is_hold for one in decisions(Sluice(), untold)[len(first) :])


def test_no_job_is_stopped_for_slots_that_are_not_there():
    """80 slots that carry half of what arrives: dividing them anew every five minutes only stops the job."""
    full = {"parallelism": 40, "input_rate": 5000.0, "output_rate": 5000.0, "busy": 0.95, "backpressure": 0.0}
    source = {**full, "arrival_rate": 10_000.0, "lag_rate": 5000.0}
    cost = ActionCost(downtime_s=30.0, cooldown_s=300.0, most_slots=80)
    seen = [
        job("source>map", time_s=15.0 * number, source={**source, "lag": 75_000.0 * number}, map=full).model_copy(
            update={"action_cost": cost}
        )
        for number in range(1, 60)
    ]
    made = decisions(Sluice(), seen)
    assert all(one.is_hold for one in made), next(one.reason for one in made if not one.is_hold)
    assert "no slots beyond" in made[-1].reason
