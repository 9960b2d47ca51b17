"""Stories of the loop: what happens when the policy, the planner or the engine misbehaves."""

import threading
from dataclasses import dataclass, field

import pytest

from sluice.control.decider import Decider
from sluice.control.engine import RecordCount
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.control.memory import MemoryStore
from sluice.journal.file import MemoryJournal
from sluice.model import Graph, Observation, Operator, OperatorMetrics, Outcome, Placement, Recommendation, Target


@dataclass
class FakeEngine:
    """Keeps what it is told; `apply` can be made to fail."""

    fails: list[Exception | str] = field(default_factory=list)
    plan: Target | None = None
    applied: list[dict[str, int]] = field(default_factory=list)
    stopped: int = 0
    time_s: float = 0.0

    graph = Graph(operators=(Operator(name="a"),))

    @property
    def clock(self):
        return self

    def now_s(self):
        return self.time_s

    def sleep_s(self, duration_s):
        self.time_s += duration_s

    def start(self, plan):
        self.plan = plan

    def observe(self):
        metrics = {"a": OperatorMetrics(parallelism=self.plan.parallelism["a"])}
        return Observation(time_s=self.time_s, interval_s=10, operators=metrics)

    def apply(self, plan):
        if self.fails:
            problem = self.fails.pop(0)
            if isinstance(problem, Exception):
                raise problem
            return Outcome(error=problem)
        changed = {"a": (self.plan.parallelism["a"], plan.parallelism["a"])}
        self.plan = plan
        self.applied.append(plan.parallelism)
        return Outcome(changed=changed, downtime_s=1.0)

    def stop(self):
        self.stopped += 1
        return RecordCount(arrived=0, processed=0, waiting=0, lost=0, duplicated=0)


class Scripted:
    """Returns (or raises) one thing after the other, and counts in its memory."""

    def __init__(self, *script):
        self.script = script

    def decide(self, observation, memory):
        step = memory.get("step", 0)
        action = self.script[min(step, len(self.script) - 1)]
        if isinstance(action, Exception):
            raise action
        decision = (
            Recommendation(parallelism={"a": action}, reason=f"wants {action}") if isinstance(action, int) else action
        )
        return decision, {"step": step + 1}


def run(policy, engine=None, *, cycles=3, timeout_s=None, should_stop=lambda: False, **parts):
    engine = engine or FakeEngine()
    journal = MemoryJournal()
    loop = Loop(engine=engine, decider=Decider(policy, timeout_s), journal=journal, **parts)
    loop.run(Target(parallelism={"a": 1}), duration_s=10 * cycles, interval_s=10, should_stop=should_stop)
    return engine, [entry for entry in journal.entries if entry["kind"] == "cycle"]


def test_a_wish_is_applied_and_recorded_with_its_reason():
    engine, cycles = run(Scripted(3))
    assert engine.applied == [{"a": 3}]
    assert cycles[0]["decision"]["reason"] == "wants 3"
    assert cycles[0]["applied"]["changed"] == {"a": [1, 3]}
    assert [cycle["applied"] is None for cycle in cycles] == [False, True, True]
    assert engine.stopped == 1


class Counting(Scripted):
    """Wants one more every time it is asked, and asks to be left alone while the job cools down."""

    decides_during_cooldown = False

    def decide(self, observation, memory):
        asked = memory.get("asked", 0) + 1
        wish = Recommendation(parallelism={"a": observation.parallelism["a"] + 1}, reason=f"asked {asked} times")
        return wish, {"asked": asked}


def test_a_policy_can_ask_to_be_left_alone_during_the_cool_down():
    _, cycles = run(Counting(), cycles=5, guards=Guards(cooldown_s=25))
    assert [cycle["decision"]["reason"] for cycle in cycles] == [
        "asked 1 times",
        "cool-down: 15 of 25 s left, the policy is not asked",
        "cool-down: 5 of 25 s left, the policy is not asked",
        "asked 2 times",
        "cool-down: 15 of 25 s left, the policy is not asked",
    ]


def test_a_policy_that_raises_holds_and_the_loop_goes_on():
    engine, cycles = run(Scripted(ZeroDivisionError("no busy time"), 2), cycles=2)
    assert cycles[0]["problem"] == "policy failed: ZeroDivisionError: no busy time"
    assert cycles[0]["applied"] is None
    # its memory did not move on, so it fails the same way again
    assert cycles[1]["problem"] == cycles[0]["problem"]
    assert engine.applied == []


@pytest.mark.parametrize(
    ("nonsense", "problem"),
    [
        (None, "policy returned None instead of a decision"),
        (Recommendation(parallelism={"x": 2}, reason="2"), "policy wished for unknown operators: x"),
    ],
)
def test_a_nonsense_wish_is_refused_by_name(nonsense, problem):
    engine, cycles = run(Scripted(nonsense), cycles=1)
    assert cycles[0]["problem"] == problem
    assert engine.applied == []


def test_a_policy_that_overruns_holds_until_it_returns_and_its_answer_is_thrown_away():
    gate = threading.Event()

    class Stuck:
        calls = 0

        def decide(self, observation, memory):
            Stuck.calls += 1
            if Stuck.calls == 1:
                gate.wait()
                return Recommendation(parallelism={"a": 99}, reason="too late"), {"late": True}
            return Recommendation(parallelism={"a": 2}, reason="wants 2"), memory

    decider = Decider(Stuck(), timeout_s=0.05)
    seen = Observation(time_s=0, interval_s=1, operators={"a": OperatorMetrics(parallelism=1)})
    first = decider.ask(seen, {})
    second = decider.ask(seen, {})
    assert "no decision within 0.05 s" in first.problem
    assert "still busy" in second.problem
    assert first.memory == second.memory == {}
    gate.set()
    decider._overdue.join()
    assert decider.ask(seen, {}).decision.parallelism == {"a": 2}


@pytest.mark.parametrize("failure", [RuntimeError("no slots"), "rolled back: no slots"])
def test_a_failed_rescale_is_recorded_and_tried_again(failure):
    engine, cycles = run(Scripted(3), FakeEngine(fails=[failure]))
    assert "no slots" in cycles[0]["applied"]["error"]
    assert cycles[1]["applied"]["error"] is None
    assert engine.applied == [{"a": 3}]


def test_a_planner_that_fails_leaves_the_job_as_it_is():
    def planner(graph, parallelism, observation, current):
        if observation is not None:
            raise ValueError("3 tasks, 2 slots")
        return Placement(tasks={"w0": dict(parallelism)}), "all on w0"

    engine, cycles = run(Scripted(3), planner=planner)
    assert "3 tasks, 2 slots" in cycles[0]["applied"]["error"]
    assert engine.applied == []
    assert engine.plan.placement == Placement(tasks={"w0": {"a": 1}})


def test_the_planner_sees_where_tasks_are_now():
    seen = []

    def planner(graph, parallelism, observation, current):
        seen.append(current)
        return Placement(tasks={"w0": dict(parallelism)}), f"{parallelism['a']} on w0"

    engine, cycles = run(Scripted(3, 4), planner=planner)
    assert seen == [None, Placement(tasks={"w0": {"a": 1}}), Placement(tasks={"w0": {"a": 3}})]
    assert cycles[1]["plan"]["notes"] == ["4 on w0"]
    assert engine.plan.placement == Placement(tasks={"w0": {"a": 4}})


def test_dry_run_does_everything_but_apply():
    engine, cycles = run(Scripted(3), dry_run=True)
    assert engine.applied == []
    assert all(cycle["plan"]["parallelism"] == {"a": 3} and cycle["applied"] is None for cycle in cycles)


def test_cool_down_holds_the_second_action_back():
    engine, cycles = run(Scripted(2, 3), guards=Guards(cooldown_s=20), cycles=4)
    assert engine.applied == [{"a": 2}, {"a": 3}]
    assert [cycle["cooling"] for cycle in cycles] == [False, True, False, False]


def test_what_was_learned_survives_a_restart(tmp_path):
    store = MemoryStore(tmp_path / "memory.json", "scripted")
    run(Scripted(1), store=store, cycles=2)
    _, cycles = run(Scripted(1, 1, 5), store=store, cycles=1)
    assert cycles[0]["plan"]["parallelism"] == {"a": 5}


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
    assert journal.entries[-1]["kind"] == "end"


def test_a_request_to_stop_ends_the_run_after_the_cycle():
    answers = iter([False, True])
    _, cycles = run(Scripted(1), cycles=9, should_stop=lambda: next(answers))
    assert len(cycles) == 1


def test_what_the_end_of_a_run_leaves_over_is_noted_but_not_decided_on():
    engine, cycles = run(Scripted(2, 3), cycles=1.3)
    assert engine.applied == [{"a": 2}]
    assert [cycle["time_s"] for cycle in cycles] == [10, 13]
    assert "too short a window" in cycles[1]["decision"]["reason"]
