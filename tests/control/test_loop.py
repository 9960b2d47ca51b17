"""Stories of the loop: target, requested and observed; and what happens when an engine fails."""

import pytest

from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.loop import Loop, Review
from sluice.control.memory import MemoryStore
from sluice.journal.file import MemoryJournal
from sluice.journal.records import Cycle, End, Outcome
from sluice.model import Graph, Operator, Placement, Recommendation, Target
from tests.control.fakes import FakeEngine, Lingering, Scripted, kinds, run

TWO = Graph(operators=(Operator(name="a"), Operator(name="b")))
SHARED = TWO.model_copy(update={"shared": True})


def test_a_recommendation_becomes_the_target_and_is_recorded_with_its_reason():
    engine, reports = run(Scripted(3))
    assert engine.requests == [{"a": 3}]
    assert reports[0].cycle.recommendation.reason == "wants {'a': 3}"
    assert reports[0].result.changed == {"a": (1, 3)}
    assert kinds(reports) == ["scaled", "held", "held"]
    assert engine.stopped == 1


def test_a_decision_is_compared_with_the_target_not_with_what_is_there():
    """Target 4, present 2, the policy says 2: the target becomes 2."""
    engine, reports = run(Scripted(4, 2), FakeEngine(room=2), initial=2)
    assert engine.requests == [{"a": 4}, {"a": 2}]
    assert reports[1].cycle.target.parallelism == {"a": 2}
    assert kinds(reports) == ["waiting", "scaled", "held"]


def test_what_is_requested_and_not_there_is_waited_for_not_requested_again():
    engine, reports = run(Scripted(3), FakeEngine(room=1), cycles=6)
    assert engine.requests == [{"a": 3}]
    assert kinds(reports) == ["waiting", *["held"] * 5]
    assert [report.cycle.requested for report in reports[1:3]] == [{"a": 3}, {"a": 3}]


def test_instances_that_come_late_complete_the_action():
    engine = FakeEngine(room=1, tick_s=1)

    class Room(Scripted):
        def decide(self, observation, memory):
            engine.room = 1 if observation.time_s < 20 else 3
            return super().decide(observation, memory)

    _, reports = run(Room(3), engine, cycles=3, guards=Guards(cooldown_s=5))
    assert kinds(reports) == ["scaled", "held", "held"]
    statuses = [outcome.status for outcome in reports[0].outcomes]
    assert statuses == ["waiting", "done"]
    assert reports[0].outcomes[1].detail == "there after 10 s"
    assert reports[0].outcomes[1].operators["a"].observed == 3


def test_a_request_that_is_not_fulfilled_in_time_is_reported_and_reconsidered():
    """The cluster has room for 2 of 5: the target becomes 2, and more is requested only after a while."""
    engine, reports = run(Scripted(5), FakeEngine(room=2, tick_s=1), cycles=12, fulfil_within_s=30)
    assert reports[0].result.kind == "unfulfilled"
    assert reports[0].result.detail == "after 30 s a has 2 of 5"
    assert engine.requests == [{"a": 5}, {"a": 2}, {"a": 5}, {"a": 2}]
    waiting = reports[4].cycle
    assert waiting.target.parallelism == {"a": 2}
    assert waiting.notes == ("the cluster gave no more; asked again in 20 s: a 5 -> 2",)
    # the second time it takes twice as long until it is requested again
    assert [report.cycle.time_s for report in reports if report.cycle.action == "apply"] == [10, 70]


def test_a_shortage_does_not_keep_a_job_from_shrinking_and_ends_when_there_is_room():
    engine = FakeEngine(room=2, tick_s=1)

    class Falling(Scripted):
        def decide(self, observation, memory):
            engine.room = 2 if observation.time_s < 50 else 9
            return super().decide(observation, memory)

    _, reports = run(Falling(5, 5, 5, 5, 1, 5), engine, cycles=9, fulfil_within_s=25)
    assert engine.requests == [{"a": 5}, {"a": 2}, {"a": 1}, {"a": 5}]
    assert reports[-1].cycle.target.parallelism == {"a": 5}


def test_instances_that_get_lost_are_reported_when_they_do_not_come_back():
    engine = FakeEngine(tick_s=1)

    class Loses(Scripted):
        def decide(self, observation, memory):
            engine.room = 1 if observation.time_s >= 20 else None
            return super().decide(observation, memory)

    _, reports = run(Loses(3), engine, cycles=6, fulfil_within_s=20)
    assert reports[3].cycle.events == ("unfulfilled: after 20 s a has 1 of 3",)
    assert reports[4].cycle.target.parallelism == {"a": 1}


@pytest.mark.parametrize("shared", [False, True])
def test_what_was_given_up_is_requested_again_though_the_policy_holds(shared):
    """A cluster without room for a while: a policy that holds must not stay with what was left for ever."""
    graph = Graph(operators=(Operator(name="a"),), shared=shared)
    engine = FakeEngine(graph=graph, tick_s=1)

    class Holds(Scripted):
        def decide(self, observation, memory):
            engine.room = 1 if 20 <= observation.time_s < 60 else None
            return super().decide(observation, memory)

    _, reports = run(Holds(Recommendation.hold("no")), engine, cycles=12, initial=3, fulfil_within_s=20)
    assert engine.requests == [{"a": 1}, {"a": 3}]
    again = next(report for report in reports if report.cycle.action == "apply")
    assert again.cycle.notes == ("requested again after a shortage: a 1 -> 3",)
    assert again.result.kind == "scaled"


def test_what_a_policy_recommends_less_of_during_a_shortage_is_not_requested_again():
    engine = FakeEngine(room=2, tick_s=1)
    script = (*[5] * 3, 2, Recommendation.hold("no"))
    run(Scripted(*script), engine, cycles=20, fulfil_within_s=20)
    assert engine.requests == [{"a": 5}, {"a": 2}]


def test_an_action_succeeds_for_some_operators_and_fails_for_others():
    engine = FakeEngine(graph=TWO, fails=[{"b": "state is being rewritten"}])
    _, reports = run(Scripted({"a": 2, "b": 3}), engine, guards=Guards(cooldown_s=15))
    first = reports[0].result
    assert first.kind == "partly"
    assert first.changed == {"a": (1, 2)}
    assert first.errors == {"b": "state is being rewritten"}
    assert engine.requests == [{"a": 2, "b": 1}, {"a": 2, "b": 3}]
    assert kinds(reports) == ["partly", "cooldown", "scaled"]


def test_queries_that_share_their_instances_get_one_number_before_the_target_is_made():
    """Two queries recommend 3 and 1 at two executors: that makes two, so nothing changes or is called scaled."""
    engine = FakeEngine(graph=SHARED)
    _, reports = run(Scripted({"a": 3, "b": 1}), engine, initial=2, guards=Guards(cooldown_s=15))
    assert engine.requests == []
    assert kinds(reports) == ["held"] * 3
    assert all(report.cycle.target.parallelism == {"a": 2, "b": 2} for report in reports)


def test_shared_instances_are_weighed_by_work():
    engine = FakeEngine(graph=SHARED, busy={"a": 0.6, "b": 0.2})
    _, reports = run(Scripted({"a": 4, "b": 1}), engine, initial=2, cycles=1)
    assert engine.requests == [{"a": 4, "b": 4}]
    assert reports[0].cycle.notes == ("shared instances: a 4 (75% of the work), b 1 (25% of the work) make 4",)


def test_operators_that_come_and_go_share_the_target():
    class Changing(FakeEngine):
        def observe(self):
            names = {10: ("a", "b"), 20: ("a", "b", "c"), 30: ("c",)}[self.time_s]
            self.graph = Graph(operators=tuple(Operator(name=name) for name in names), shared=True)
            return super().observe()

    policy = Scripted({"a": 3, "b": 3}, Recommendation.hold("no"))
    engine, reports = run(policy, Changing(graph=SHARED), cycles=3)
    assert [report.cycle.target.parallelism for report in reports] == [
        {"a": 3, "b": 3},
        {"a": 3, "b": 3, "c": 3},
        {"c": 3},
    ]
    assert engine.requests == [{"a": 3, "b": 3}, {"a": 3, "b": 3, "c": 3}, {"c": 3}]


def test_the_target_is_reconciled_at_every_tick_and_every_cycle():
    engine, _ = run(Scripted(1), FakeEngine(tick_s=2), cycles=3)
    assert engine.reconciled == 1 + 3 * 5 + 3


def test_an_engine_that_raises_between_cycles_does_not_end_the_loop():
    class Stumbles(FakeEngine):
        def reconcile(self, target):
            if 10 < self.time_s < 20:
                raise ConnectionError("no answer")
            return super().reconcile(target)

    engine, reports = run(Scripted(1, 1, 3), Stumbles(tick_s=1), cycles=4)
    assert [report.cycle.events for report in reports] == [(), ("not reconciled: ConnectionError: no answer",), (), ()]
    assert engine.requests == [{"a": 3}]


def test_repairs_of_the_engine_are_on_record():
    engine = FakeEngine(tick_s=5, repairs=["operator 'a' was started again: lost its Python process"])
    _, reports = run(Scripted(1), engine, cycles=2)
    assert reports[0].cycle.events == ("operator 'a' was started again: lost its Python process",)
    assert reports[1].cycle.events == ()


def test_a_resumed_engine_brings_its_own_target():
    class Resumed(FakeEngine):
        def start(self, target):
            return super().start(Target(parallelism={"a": 7}))

    engine, reports = run(Scripted(Recommendation.hold("no")), Resumed())
    assert engine.requests == []
    assert reports[0].cycle.target.parallelism == {"a": 7}


@pytest.mark.parametrize("failure", [RuntimeError("no slots"), {"a": "rolled back: no slots"}])
def test_a_failed_rescale_is_recorded_and_tried_again(failure):
    engine, reports = run(Scripted(3), FakeEngine(fails=[failure]))
    assert kinds(reports) == ["failed", "scaled", "held"]
    assert "no slots" in reports[0].result.error
    assert engine.requests[-1] == {"a": 3}


def test_a_planner_that_fails_leaves_the_job_as_it_is():
    def planner(graph, parallelism, observation, current):
        if observation is not None:
            raise ValueError("3 tasks, 2 slots")
        return Placement(tasks={"w0": dict(parallelism)}), "all on w0"

    engine, reports = run(Scripted(3), planner=planner)
    assert reports[0].cycle.problem == "not placed: ValueError: 3 tasks, 2 slots"
    assert engine.requests == []
    assert engine.target.placement == Placement(tasks={"w0": {"a": 1}})


def test_the_planner_sees_where_tasks_are_now():
    seen = []

    def planner(graph, parallelism, observation, current):
        seen.append(current)
        return Placement(tasks={"w0": dict(parallelism)}), f"{parallelism['a']} on w0"

    engine, reports = run(Scripted(3, 4), planner=planner)
    assert seen == [None, Placement(tasks={"w0": {"a": 1}}), Placement(tasks={"w0": {"a": 3}})]
    assert reports[1].cycle.notes == ("4 on w0",)
    assert engine.target.placement == Placement(tasks={"w0": {"a": 4}})


def test_tasks_are_placed_anew_when_workers_change_also_in_a_cooldown_and_without_their_slots():
    reviews = iter([Review(4), Review(2, "worker w1 is gone"), Review(2)])

    def planner(graph, parallelism, observation, current):
        return Placement(tasks={"w0": dict(parallelism)}), f"{parallelism['a']} on w0"

    engine, reports = run(
        Scripted(4, 4), planner=planner, reviewer=lambda seen, target: next(reviews), guards=Guards(cooldown_s=100)
    )
    assert kinds(reports) == ["scaled", "scaled", "held"]
    assert reports[1].cycle.notes == ("placed anew: worker w1 is gone", "2 on w0")
    assert engine.requests == [{"a": 4}, {"a": 2}]
    assert engine.target.placement == Placement(tasks={"w0": {"a": 2}})


def test_dry_run_does_everything_but_reconcile():
    engine, reports = run(Scripted(3), FakeEngine(tick_s=1), dry_run=True)
    assert engine.requests == []
    assert engine.reconciled == 0
    assert kinds(reports) == ["would_scale"] * 3
    assert all(report.cycle.proposed.parallelism == {"a": 3} for report in reports)
    assert all(report.cycle.target.parallelism == {"a": 1} for report in reports)


def test_cooldown_holds_the_second_action_back():
    engine, reports = run(Scripted(2, 3), guards=Guards(cooldown_s=20), cycles=4)
    assert engine.requests == [{"a": 2}, {"a": 3}]
    assert kinds(reports) == ["scaled", "cooldown", "scaled", "held"]


def test_a_cycle_is_on_record_before_its_effect_and_before_memory_is_saved(tmp_path):
    order = []

    class Engine(FakeEngine):
        def reconcile(self, target):
            if target != self.target:
                order.append("effect")
            return super().reconcile(target)

    class Journal(MemoryJournal):
        def append(self, record):
            order.append(record.kind)
            super().append(record)

    class Store(MemoryStore):
        def save(self, memory, time_s):
            order.append("memory")
            super().save(memory, time_s)

    loop = Loop(
        engine=Engine(), decider=Decider(Scripted(3)), journal=Journal(), store=Store(tmp_path / "m.json", "scripted")
    )
    loop.run(Target(parallelism={"a": 1}), duration_s=10, interval_s=10)
    assert order == ["cycle", "effect", "outcome", "memory", "end"]


def test_the_engine_is_stopped_and_counted_even_if_observing_fails():
    class Broken(FakeEngine):
        def observe(self):
            raise OSError("gone")

    engine = Broken()
    journal = MemoryJournal()
    loop = Loop(engine=engine, decider=Decider(Scripted(1)), journal=journal)
    with pytest.raises(OSError, match="gone"):
        loop.run(Target(parallelism={"a": 1}), duration_s=30, interval_s=10)
    assert engine.stopped == 1
    assert journal.end().error == "OSError: gone"


def test_watchers_see_every_cycle_and_what_comes_of_it_later():
    seen = []
    engine = FakeEngine(room=1, tick_s=1)
    journal = MemoryJournal()
    loop = Loop(engine=engine, decider=Decider(Scripted(2)), journal=journal, fulfil_within_s=15)
    loop.run(Target(parallelism={"a": 1}), duration_s=30, interval_s=10, on_report=seen.append)
    assert [(report.cycle.cycle, report.result.kind) for report in seen] == [
        (0, "waiting"),
        (1, "held"),
        (0, "unfulfilled"),
        (2, "held"),
    ]
    assert [type(record) for record in journal.records] == [Cycle, Outcome, Cycle, Outcome, Cycle, End]


def test_a_request_to_stop_ends_the_run_after_the_cycle():
    answers = iter([False, True])
    _, reports = run(Scripted(1), cycles=9, should_stop=lambda: next(answers))
    assert len(reports) == 1


def test_what_the_end_of_a_run_leaves_over_is_on_record_but_not_decided_on():
    engine, reports = run(Scripted(2, 3), cycles=1.3)
    assert engine.requests == [{"a": 2}]
    assert [report.cycle.time_s for report in reports] == [10, 13]
    assert "too short to decide on" in reports[1].cycle.recommendation.reason


def test_a_surplus_that_leaves_is_no_repair():
    _, reports = run(Scripted(1), Lingering(tick_s=1), cycles=4)
    assert [report.cycle.events for report in reports] == [()] * 4


def test_instances_that_had_not_come_when_the_run_began_are_told_when_they_come():
    engine = FakeEngine(room=1, tick_s=1)

    class Room(Scripted):
        def decide(self, observation, memory):
            engine.room = None
            return super().decide(observation, memory)

    _, reports = run(Room(3), engine, initial=3)
    assert [report.cycle.events for report in reports] == [(), ("missing instances came after 10 s",), ()]
