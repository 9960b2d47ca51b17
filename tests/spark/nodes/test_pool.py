"""Nodes of a pool: requested, measured, lost, drained, and types that cannot be had."""

from __future__ import annotations

import pytest

from sluice.errors import SluiceError
from sluice.spark.nodes.draining import IDLE_S, LAST_TASKS_S, LONGEST_S, Drains
from sluice.spark.nodes.pool import ABSENT_S, FIRST_PAUSE_S, LIST_EVERY_S, NodePool
from sluice.spark.nodes.provider import WorkerNode
from sluice.spark.placed.workers import Executor
from tests.spark.nodes.fakes import AtOnce, FakeNodes, Later


class World:
    def __init__(self, executor=None, **options) -> None:
        self.time_s = 0.0
        self.provider = FakeNodes()
        self.pool = NodePool(self.provider, now_s=lambda: self.time_s, executor=executor or AtOnce(), **options)

    def tick(self, hosts=None, *, drained=True, after_s=1.0) -> tuple[str, ...]:
        self.time_s += after_s
        return self.pool.tick(self.provider.hosts if hosts is None else hosts, lambda _: drained)


def test_a_requested_node_is_there_when_its_executor_is_and_its_start_is_measured():
    world = World()
    world.pool.reconcile({"small": 1})
    world.pool.reconcile({"small": 1})
    assert world.tick(hosts=set(), after_s=4) == ("node of type small requested",)
    assert (world.pool.ready, world.pool.paid("small"), world.pool.coming("small")) == ({}, 1, 1)
    assert world.tick(after_s=3) == ("node small-1 joined after 7 s",)
    assert list(world.pool.ready) == ["small-1"]
    assert world.pool.metrics()["small"].start_s == 7


def test_a_provider_that_takes_its_time_holds_nobody_up():
    threads = Later()
    world = World(threads)
    world.pool.reconcile({"large": 2})
    for _ in range(3):
        world.tick()
    assert world.pool.paid("large") == 0
    threads.run()
    world.tick()
    assert len(world.pool.ready) == 2


def test_a_type_that_cannot_be_started_is_not_available_for_a_growing_while():
    world = World()
    world.provider.full = {"large"}
    world.pool.reconcile({"large": 1, "small": 1})
    (*_, said) = world.tick()
    assert "small-1 joined" in said
    assert world.pool.metrics()["large"].available is False
    assert world.pool.metrics()["small"].available is True
    world.pool.reconcile({"large": 1})
    assert world.pool.coming("large") == 0
    world.time_s += FIRST_PAUSE_S
    world.pool.reconcile({"large": 1})
    assert any(f"tried again in {2 * FIRST_PAUSE_S:.0f} s" in one for one in world.tick())
    world.provider.full = set()
    world.time_s += 2 * FIRST_PAUSE_S
    world.pool.reconcile({"large": 1})
    world.tick()
    assert world.pool.metrics()["large"].available is True


def test_a_node_that_does_not_come_in_time_makes_its_type_unavailable_and_may_come_later():
    world = World()
    world.pool.reconcile({"small": 1})
    world.tick(hosts=set())
    assert "did not come within 61 s" in world.tick(hosts=set(), after_s=60)[0]
    assert world.pool.metrics()["small"].available is False
    assert world.pool.coming("small") == 1
    assert world.tick() == ("node small-1 joined after 62 s",)
    assert world.pool.metrics()["small"].available is True


def test_a_node_that_dies_is_lost_and_one_that_dies_before_it_joined_has_failed():
    world = World()
    world.pool.reconcile({"small": 1, "large": 1})
    world.tick(hosts={"10.0.0.1"})
    world.provider.nodes.clear()
    said = world.tick(hosts={"10.0.0.1"}, after_s=LIST_EVERY_S)
    assert said[0] == "node small-1 was lost"
    assert said[1].startswith("node of type large ended before it joined")
    assert world.pool.ready == {}


def test_a_node_without_an_executor_is_stopped_after_a_while():
    world = World()
    world.pool.reconcile({"small": 1})
    world.tick()
    world.tick(hosts=set())
    assert list(world.pool.ready) == ["small-1"]
    said = world.tick(hosts=set(), after_s=ABSENT_S + 1)
    assert said == (f"node small-1 has had no executor for {ABSENT_S:.0f} s",)
    assert world.provider.stopped == ["small-1"]


def test_a_released_node_is_paid_for_until_it_has_drained_and_stopped():
    world = World()
    world.pool.reconcile({"small": 1})
    world.tick()
    world.pool.reconcile({}, release=["small-1"])
    assert world.tick(drained=False) == ("node small-1 drains: no instance is on it",)
    assert (world.pool.paid("small"), world.provider.stopped) == (1, [])
    world.tick(drained=True)
    assert world.provider.stopped == ["small-1"]
    assert world.tick() == ("node small-1 stopped",)
    assert world.pool.paid("small") == 0


def test_no_more_nodes_than_allowed():
    world = World(most=2)
    world.pool.reconcile({"small": 3, "large": 1})
    world.tick()
    assert len(world.pool.ready) == 2


def test_nodes_that_a_killed_run_left_behind_are_used_or_stopped():
    world = World()
    world.provider.start("small", 2)
    world.provider.start("large", 1)
    world.pool.begin({"small": 1})
    world.tick()
    assert list(world.pool.ready) == ["small-1"]
    assert world.provider.stopped == ["small-2", "large-3"]


def test_a_first_node_that_cannot_be_started_is_an_error():
    world = World(most=1)
    with pytest.raises(SluiceError, match="2 nodes are needed to begin with, 1 are allowed"):
        world.pool.begin({"small": 2})
    full = World()
    full.provider.full = {"small"}
    with pytest.raises(SluiceError, match="no room for a 'small'"):
        full.pool.begin({"small": 1})


def test_closing_stops_all_there_are_and_all_to_come():
    world = World()
    world.pool.reconcile({"small": 1})
    world.tick()
    world.pool.reconcile({"large": 1})
    world.pool.close()
    assert sorted(world.provider.stopped) == ["large-2", "small-1"]


@pytest.mark.parametrize("tasks_end", [True, False])
def test_a_node_has_drained_when_nothing_ran_on_it_for_a_while(tasks_end):
    node = WorkerNode(name="n", type="small", host="h")
    told: list[str] = []
    tasks, time_s = {"7": 1}, 0.0
    drains = Drains(
        lambda: {"h": Executor(executor_id="7", host="h", cores=1)}, lambda: tasks, told.extend, lambda: time_s
    )
    assert not drains(node)
    if tasks_end:
        tasks["7"] = 0
        assert not drains(node)
        time_s = IDLE_S
        assert (drains(node), told) == (False, ["7"])
        time_s += 1
    else:
        time_s = LONGEST_S + 1
        assert (drains(node), told) == (False, ["7"])
        time_s += LAST_TASKS_S
    assert drains(node)
    assert told == ["7"]


def test_a_node_whose_executor_is_gone_has_drained():
    drains = Drains(dict, dict, print)
    assert drains(WorkerNode(name="n", type="small", host="h"))
