"""Instances as nodes: what the engine below and the loop are told, and how sizes are sampled, without Spark."""

from __future__ import annotations

import json

import pytest

from sluice.control.decider import Decider
from sluice.control.loop import Loop
from sluice.errors import BadInputError, SluiceError
from sluice.journal.file import MemoryJournal
from sluice.model import Recommendation, Target
from sluice.spark.nodes.engine import SizedEngine, saved_sizes
from sluice.spark.placed.speeds import TaskSpeeds
from tests.spark.nodes.fakes import LARGE, SMALL


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
    first = world.engine.observe().operators["map"]
    assert (first.size_rates, first.busy, first.true_input_rate) == (None, None, None), "all executors are new"
    seen = world.engine.observe()
    assert (seen.operators["map"].busy, seen.operators["map"].true_input_rate) == (0.5, 2500.0)
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


@pytest.mark.parametrize("content", ["", "{", '{"parallelism": {"map": 0}}', "[]"])
def test_broken_sizes_of_an_earlier_run_are_refused_in_one_line(world, content):
    (world.root / "sizes.json").write_text(content)
    with pytest.raises(BadInputError, match=r"sizes\.json' does not say which sizes a run had"):
        world.engine.start(world.target)


def test_sizes_of_another_pipeline_are_refused(world):
    other = Target(parallelism={"other": 1, "map": 1, "count": 1}, sizes={"other": {"small": 1}})
    (world.root / "sizes.json").write_text(other.to_json())
    with pytest.raises(BadInputError, match="unknown operator 'other'; known: count, map"):
        world.engine.start(world.target)


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


def test_nodes_that_could_not_be_stopped_are_named_at_the_end(world, caplog):
    world.started()

    def refuse(_):
        raise SluiceError("the cloud is away")

    world.provider.stop = refuse
    world.engine.stop()
    assert "node small-1 on 10.0.0.1 was not stopped and may cost on: the cloud is away" in caplog.text


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
