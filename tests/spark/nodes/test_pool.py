"""Nodes of a pool: requested, measured, lost, drained, and types that cannot be had."""

from __future__ import annotations

import pytest

from sluice.errors import SluiceError
from sluice.spark.nodes import stopping
from sluice.spark.nodes.draining import IDLE_S, LAST_TASKS_S, LONGEST_S, Drains
from sluice.spark.nodes.pool import ABSENT_S, FIRST_PAUSE_S, GIVEN_UP, LEAST_PATIENCE_S, LIST_EVERY_S, NodePool
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


def test_a_node_that_never_joins_is_stopped_and_another_one_may_be_requested():
    world = World()
    world.pool.reconcile({"small": 1})
    world.tick(hosts=set(), after_s=LEAST_PATIENCE_S + 1)
    said = world.tick(hosts=set(), after_s=GIVEN_UP * LEAST_PATIENCE_S)
    assert said[0].startswith("node of type small (small-1) was stopped: no executor came from 10.0.0.1; tried again")
    assert (world.provider.stopped, world.pool.coming("small")) == (["small-1"], 0)
    world.time_s += 10 * FIRST_PAUSE_S
    world.pool.reconcile({"small": 1})
    world.tick()
    assert list(world.pool.ready) == ["small-2"]


def test_an_overdue_type_stays_unavailable_while_its_node_does_not_come():
    world = World()
    world.pool.reconcile({"small": 1})
    said = [event for _ in range(110) for event in world.tick(hosts=set())]
    assert [event for event in said if "did not come" in event] == [
        "node of type small did not come within 61 s; tried again in 30 s",
        "node of type small did not come within 91 s; tried again in 60 s",
    ]
    assert not world.pool.is_available("small")


def test_starts_that_fail_together_are_one_failure():
    world = World()
    world.provider.full = {"large"}
    world.pool.reconcile({"large": 9})
    said = [event for event in world.tick() if "did not start" in event]
    assert said == [f"node of type large did not start: no room for a 'large'; tried again in {FIRST_PAUSE_S:.0f} s"]


def test_a_provider_that_raises_anything_is_a_failed_start_in_one_line():
    world = World()
    world.provider.start = lambda *_: [][0]
    world.pool.reconcile({"small": 1})
    assert "did not start: IndexError: list index out of range" in world.tick()[-1]
    with pytest.raises(SluiceError, match="node of type 'large' did not start: IndexError"):
        world.pool.begin({"large": 1})


def test_a_stop_that_fails_is_tried_again_ever_less_often_and_told_at_the_end():
    world = World()
    world.pool.reconcile({"small": 1})
    world.tick()
    calls: list[float] = []

    def stop(_):
        calls.append(world.time_s)
        raise SluiceError("the cloud is away")

    world.provider.stop = stop
    world.pool.reconcile({}, release=["small-1"])
    said = [event for _ in range(40) for event in world.tick()]
    first_s = stopping.FIRST_PAUSE_S
    assert f"node small-1 was not stopped: the cloud is away; tried again in {first_s:.0f} s" in said
    assert len(calls) == 4
    assert world.pool.paid("small") == 1, "it costs until it has stopped"
    assert world.pool.close() == ("node small-1 on 10.0.0.1 was not stopped and may cost on: the cloud is away",)


def test_a_listing_that_hangs_holds_nobody_up_and_says_nothing_of_nodes_it_does_not_know():
    threads = Later()
    world = World(threads)
    world.pool.reconcile({"small": 1})
    threads.run()
    world.tick()
    assert list(world.pool.ready) == ["small-1"]
    (listing,) = threads.waiting
    threads.waiting = []
    world.pool.reconcile({"small": 1, "large": 1})
    threads.run()
    for _ in range(5):
        world.tick()
    assert len(world.pool.ready) == 3
    listing[0].set_result([])
    assert world.tick() == ("node small-1 was lost",), "the others came after it had begun"


def test_a_listing_that_fails_is_said_once():
    world = World()
    world.pool.reconcile({"small": 1})
    world.tick()
    world.provider.list = lambda: 1 / 0
    said = [event for _ in range(20) for event in world.tick()]
    assert said == ["nodes are not listed: ZeroDivisionError: division by zero"]
    assert list(world.pool.ready) == ["small-1"]


def test_a_node_that_is_killed_while_it_drains_is_gone():
    world = World()
    world.pool.reconcile({"small": 1})
    world.tick()
    world.pool.reconcile({}, release=["small-1"])
    world.tick(drained=False)
    world.provider.nodes.clear()
    said = world.tick(hosts={"10.0.0.1"}, drained=False, after_s=LIST_EVERY_S)
    assert said == ("node small-1 was lost while it drained",)
    assert (world.pool.paid("small"), world.provider.stopped) == (0, [])


def test_nodes_that_are_being_stopped_count_among_those_allowed():
    threads = Later()
    world = World(threads, most=1)
    world.pool.reconcile({"small": 1})
    threads.run()
    world.tick()
    world.pool.reconcile({"large": 1}, release=["small-1"])
    world.tick()
    world.pool.reconcile({"large": 1})
    assert world.pool.coming("large") == 0
    threads.run()
    world.tick()
    world.pool.reconcile({"large": 1})
    assert world.pool.coming("large") == 1


def test_the_first_nodes_say_nothing_of_how_long_others_take():
    world = World()
    world.pool.begin({"small": 1})
    assert world.tick(after_s=50) == ("node of type small requested", "node small-1 joined")
    assert world.pool.metrics()["small"].start_s == 10


def test_closing_stops_the_others_if_one_start_fails_in_any_way():
    world = World()
    world.pool.reconcile({"small": 1})
    world.tick()
    world.provider.start = lambda *_: 1 / 0
    world.pool.reconcile({"large": 1})
    assert world.pool.close() == ()
    assert world.provider.stopped == ["small-1"]


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
