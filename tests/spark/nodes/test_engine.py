"""Instances as nodes: what the engine below and the loop are told, and how sizes are sampled, without Spark."""

from __future__ import annotations

import json
import threading

import pytest

from sluice.control.decider import Decider
from sluice.control.loop import Loop
from sluice.errors import BadInputError, SluiceError
from sluice.journal.file import MemoryJournal
from sluice.journal.records import RecordCount
from sluice.model import Graph, Observation, Operator, OperatorMetrics, Recommendation, Reconciliation, Target
from sluice.spark.internals import executor_calls
from sluice.spark.nodes.engine import SizedEngine, saved_sizes
from sluice.spark.nodes.pool import NodePool
from sluice.spark.nodes.sampling import LiveSampling
from sluice.spark.placed.speeds import TaskSpeeds
from sluice.spark.placed.workers import Executor
from tests.spark.nodes.fakes import LARGE, SMALL, AtOnce, FakeNodes


class FakeClock:
    def __init__(self) -> None:
        self.time_s = 0.0
        self.interrupted = threading.Event()

    def now_s(self):
        return self.time_s

    def sleep_s(self, duration_s):
        self.time_s += duration_s


class FakePlacing:
    worths: dict = {}  # noqa: RUF012


class FakeWorkers:
    """The executors of all nodes whose `start_s` is over."""

    def __init__(self, provider, clock) -> None:
        self.provider, self.clock = provider, clock
        self.started: dict[str, float] = {}
        self.speeds = TaskSpeeds()
        self.dead: set[str] = set()

    @property
    def workers(self):
        there = {}
        for number, node in enumerate(self.provider.list()):
            start_s = next(one.start_s for one in self.provider.types() if one.name == node.type)
            if self.clock.time_s - self.started.setdefault(node.name, self.clock.time_s) >= start_s:
                slots = next(one.slots for one in self.provider.types() if one.name == node.type)
                if node.host not in self.dead:
                    there[node.host] = Executor(executor_id=f"e{number}{node.name}", host=node.host, cores=slots)
        return there

    def active_tasks(self):
        return {}


class FakeInner:
    """The engine below: does what it is told, and reads at the speed of the nodes."""

    tick_s = 1.0
    spark = None
    guarantees: dict = {}  # noqa: RUF012

    def __init__(self, provider) -> None:
        self.clock = FakeClock()
        self.worker_side = FakeWorkers(provider, self.clock)
        self.runtime = type("Runtime", (), {"placing": FakePlacing()})()
        self.graph = Graph(operators=(Operator(name="map"), Operator(name="count", min_parallelism=2)))
        self.target: Target | None = None
        self.history: list[Target] = []
        self.stopped = False

    def start(self, target):
        self.target = target
        return target

    def reconcile(self, target):
        if target != self.target:
            self.history.append(target)
        self.target = target
        return Reconciliation(requested=target.parallelism, observed=target.parallelism)

    def maintain(self):
        return ()

    def observe(self):
        tasks = [
            {"run_id": name, "executor": executor.executor_id, "read_records": 1000 * cores, "run_ms": 1000}
            for name in self.graph.names
            for host, counts in self.target.placement.tasks.items()
            for executor in [self.worker_side.workers.get(host)]
            if executor is not None and counts.get(name)
            for cores in [1 if executor.cores > 1 else 0.5]
        ]
        self.worker_side.speeds.add(tasks, lambda run: run)
        self.worker_side.speeds.close_window()
        operators = {name: OperatorMetrics(parallelism=count) for name, count in self.target.parallelism.items()}
        return Observation(time_s=self.clock.time_s + 1, interval_s=1.0, operators=operators)

    def stop(self):
        self.stopped = True
        return RecordCount(arrived=0, processed=0, waiting=0, lost=0, duplicated=0)


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(executor_calls, "decommission_executors", lambda *_: [])
    return World(tmp_path)


class World:
    def __init__(self, root) -> None:
        self.provider = FakeNodes()
        self.inner = FakeInner(self.provider)
        self.pool = NodePool(self.provider, now_s=self.inner.clock.now_s, executor=AtOnce())
        self.root = root
        self.engine = SizedEngine(self.inner, self.pool, default_type="small", root=root)
        self.target = Target(parallelism={"map": 1, "count": 1})

    def started(self):
        self.pool.begin({"small": 2})
        _ = self.inner.worker_side.workers
        self.inner.clock.sleep_s(SMALL.start_s)
        self.engine.start(self.target)
        return self

    def passing(self, seconds, target=None):
        """Ticks as the loop makes them; the last reconciliation and all that was said."""
        self.target = target or self.target
        said: list[str] = []
        done = None
        for _ in range(round(seconds)):
            self.inner.clock.sleep_s(1.0)
            said += self.engine.maintain()
            done = self.engine.reconcile(self.target)
        return done, said

    def tasks(self, operator):
        """Type of node -> tasks of the operator there."""
        types = {node.host: node.type for node in self.provider.nodes.values()}
        found: dict[str, int] = {}
        for host, counts in self.inner.target.placement.tasks.items():
            if counts.get(operator):
                found[types[host]] = found.get(types[host], 0) + counts[operator]
        return found


def test_an_instance_is_a_node_and_its_tasks_are_the_nodes_slots(world):
    world.started()
    assert world.tasks("map") == {"small": 1}
    assert world.tasks("count") == {"small": 2}, "as many as the operator needs at least"
    grown = Target(parallelism={"map": 2, "count": 1}, sizes={"map": {"small": 1, "large": 1}, "count": {"small": 1}})
    done = world.engine.reconcile(grown)
    assert (done.requested, done.observed) == ({"map": 2, "count": 1}, {"map": 1, "count": 1})
    assert "map on small-1 (100%), 1 large to come" in done.detail
    done, said = world.passing(LARGE.start_s + 1, grown)
    assert done.observed == {"map": 2, "count": 1}
    assert "node large-3 joined after 20 s" in said
    assert world.tasks("map") == {"small": 1, "large": 2}
    worths = world.inner.runtime.placing.worths["map"]
    assert sorted(worths.values())[1] == pytest.approx(2 * sorted(worths.values())[0], abs=0.01)


def test_a_node_that_is_replaced_works_until_the_other_is_there_and_then_drains(world):
    world.started()
    large = Target(parallelism={"map": 1, "count": 1}, sizes={"map": {"large": 1}, "count": {"small": 1}})
    world.passing(5, large)
    assert world.tasks("map") == {"small": 1}
    assert world.pool.metrics()["small"].nodes == 2
    done, _ = world.passing(LARGE.start_s, large)
    assert world.tasks("map") == {"large": 2}
    assert done.sizes == {"map": {"large": 1}, "count": {"small": 1}}
    _, said = world.passing(20)
    assert "node small-1 stopped" in said
    assert set(world.provider.nodes) == {"small-2", "large-3"}


def test_a_node_that_was_killed_is_replaced_and_its_tasks_run_elsewhere_meanwhile(world):
    world.started()
    del world.provider.nodes["small-1"]
    done, said = world.passing(4)
    assert "node small-1 was lost" in said
    assert (done.observed["map"], done.requested["map"]) == (0, 1)
    assert sum(world.inner.target.parallelism.values()) == 3
    done, _ = world.passing(SMALL.start_s + 2)
    assert done.observed == {"map": 1, "count": 1}


def test_a_window_tells_sizes_their_speeds_and_what_is_paid_for(world):
    world.started()
    mixed = Target(parallelism={"map": 2, "count": 1}, sizes={"map": {"small": 1, "large": 1}, "count": {"small": 1}})
    world.passing(LARGE.start_s + 2, mixed)
    seen = world.engine.observe()
    assert seen.operators["map"].sizes == {"small": 1, "large": 1}
    assert seen.operators["map"].parallelism == 2
    assert seen.operators["map"].size_rates == {"small": 500.0, "large": 2000.0}
    assert {name: one.nodes for name, one in seen.node_types.items()} == {"small": 2, "large": 1}


def test_a_type_nobody_can_start_is_refused_in_one_line(world):
    world.started()
    done = world.engine.reconcile(Target(parallelism={"map": 1, "count": 1}, sizes={"map": {"huge": 1}}))
    assert done.changes["map"].error == ("operator 'map': no node type 'huge'; those that can be started: large, small")


def test_a_run_does_not_begin_with_a_type_nobody_can_start(world):
    with pytest.raises(BadInputError, match="no node type 'huge'"):
        world.engine.start(Target(parallelism={"map": 1, "count": 1}, sizes={"map": {"huge": 1}}))


def test_a_run_goes_on_with_the_sizes_it_had(world):
    world.started()
    large = Target(parallelism={"map": 1, "count": 1}, sizes={"map": {"large": 1}, "count": {"small": 1}})
    world.passing(1, large)
    assert saved_sizes(world.root) == large
    again = SizedEngine(world.inner, world.pool, default_type="small", root=world.root)
    assert again.start(world.target).sizes == {"map": {"large": 1}, "count": {"small": 1}}


def test_operators_that_share_nodes_have_tasks_on_all_of_them(world):
    world.started()
    both = {"small": 1, "large": 1}
    shared = Target(parallelism={"map": 2, "count": 2}, sizes={"map": both, "count": both}, shared_nodes=True)
    done, said = world.passing(LARGE.start_s + 1, shared)
    assert done.observed == {"map": 2, "count": 2}
    assert said.count("node of type large requested") == 1
    assert world.tasks("map") == world.tasks("count") == {"small": 1, "large": 2}
    world.passing(20)
    assert len(world.provider.nodes) == 2, "the second small node had nothing to do"
    again = SizedEngine(world.inner, world.pool, default_type="small", root=world.root)
    assert again.start(world.target) == shared


def test_stopping_stops_every_node_also_if_the_engine_below_fails(world):
    world.started()
    world.inner.stop = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        world.engine.stop()
    assert world.provider.nodes == {}


class Wanting:
    """A policy that recommends one mix, whatever it sees."""

    recommends_sizes = True

    def __init__(self, mix) -> None:
        self.mix = mix

    def decide(self, observation, memory):
        return Recommendation(
            parallelism={"map": sum(self.mix.values())}, sizes={"map": self.mix}, reason="wants it"
        ), memory


def test_what_cannot_be_started_is_on_record_and_the_target_becomes_what_is_there(world):
    world.pool.begin({"small": 2})
    _ = world.inner.worker_side.workers
    world.inner.clock.sleep_s(SMALL.start_s)
    world.inner.clock.time_s = 0.0
    world.inner.worker_side.started = dict.fromkeys(world.provider.nodes, -100.0)
    world.provider.full = {"large"}
    journal = MemoryJournal()
    loop = Loop(
        engine=world.engine, decider=Decider(Wanting({"small": 1, "large": 1})), journal=journal, fulfil_within_s=15
    )
    loop.run(world.target, duration_s=40, interval_s=10)
    reports = journal.reports()
    events = [event for report in reports for event in report.cycle.events]
    assert any("large did not start: no room for a 'large'" in event for event in events)
    assert [outcome.status for outcome in reports[0].outcomes] == ["waiting", "unfulfilled"]
    # the target is what is there, until the policy recommends again
    assert reports[2].cycle.observation.node_types["large"].available is False
    assert reports[2].cycle.observation.operators["map"].sizes == {"small": 1}


def test_a_size_is_sampled_beside_the_others_and_its_node_leaves_afterwards(world):
    world.started()
    sampling = LiveSampling(world.engine, "map", world.target, window_s=2.0, trigger_s=1.0)
    rates = sampling.rates(LARGE.size)
    assert [next(rates) for _ in range(3)] == [2000.0] * 3
    assert world.tasks("map") == {"small": 1, "large": 2}
    assert world.engine.reconcile(world.target).observed == {"map": 1, "count": 1}, "it is no instance of the target"
    rates.close()
    assert world.tasks("map") == {"small": 1}
    assert set(world.provider.nodes) == {"small-1", "small-2"}


def test_a_sampled_node_gets_more_until_its_tasks_take_most_of_a_trigger(world):
    world.started()
    rates = LiveSampling(world.engine, "map", world.target, window_s=2.0, trigger_s=10.0).rates(LARGE.size)
    for _ in range(4):
        next(rates)
    assert world.engine.emphasis["large-3"] > 4
    rates.close()
    assert world.engine.emphasis == {}


def test_a_size_that_cannot_be_started_is_not_sampled(world):
    world.started()
    world.provider.full = {"large"}
    with pytest.raises(SluiceError, match="no node of type 'large' to sample"):
        next(LiveSampling(world.engine, "map", world.target, window_s=2.0, trigger_s=1.0).rates(LARGE.size))


def test_speeds_count_all_tasks_of_an_operator_on_an_executor():
    speeds = TaskSpeeds()
    tasks = [
        {"run_id": "map", "executor": "1", "read_records": 300, "run_ms": 1000},
        {"run_id": "map", "executor": "1", "read_records": 0, "run_ms": 500},
        {"run_id": "other", "executor": "1", "read_records": 5, "run_ms": 5},
    ]
    speeds.add(tasks, {"map": "map"}.get)
    speeds.close_window()
    assert speeds.window == {("map", "1"): 200.0}
    assert speeds.of("map") == {}, "a first window is slow"
    speeds.add([{**tasks[0], "read_records": 400}], {"map": "map"}.get)
    speeds.close_window()
    assert speeds.of("map") == {"1": 400.0}
    speeds.close_window()
    assert (speeds.window, speeds.of("map")) == ({}, {"1": 400.0})
    assert json.dumps(speeds.task_s) == "{}"
