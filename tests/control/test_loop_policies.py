"""Stories of the loop and its policies: what they are told, what they may get wrong, and what they remember."""

import math
import threading

import pytest

from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.memory import MemoryStore
from sluice.model import Graph, Observation, Operator, OperatorMetrics, Recommendation
from tests.control.fakes import FakeEngine, Lingering, Scripted, run

TWO = Graph(operators=(Operator(name="a"), Operator(name="b")))
SHARED = TWO.model_copy(update={"shared": True})


class Counting(Scripted):
    """Wants one more every time it is asked, and does not want to be asked during a cooldown."""

    decides_during_cooldown = False

    def decide(self, observation, memory):
        asked = memory.get("asked", 0) + 1
        more = Recommendation(parallelism={"a": observation.parallelism["a"] + 1}, reason=f"asked {asked} times")
        return more, {"asked": asked}


def test_a_policy_can_ask_to_be_left_alone_during_the_cooldown():
    _, reports = run(Counting(), cycles=5, guards=Guards(cooldown_s=25))
    assert [report.cycle.recommendation.reason for report in reports] == [
        "asked 1 times",
        "cooldown: 15 of 25 s left, the policy is not asked",
        "cooldown: 5 of 25 s left, the policy is not asked",
        "asked 2 times",
        "cooldown: 15 of 25 s left, the policy is not asked",
    ]


def test_a_policy_that_raises_holds_and_the_loop_goes_on():
    engine, reports = run(Scripted(ZeroDivisionError("no busy time"), 2), cycles=2)
    problems = [report.cycle.problem for report in reports]
    # its memory did not move on, so it fails the same way again
    assert problems == ["policy failed: ZeroDivisionError: no busy time"] * 2
    assert engine.requests == []


@pytest.mark.parametrize(
    ("nonsense", "problem"),
    [
        (None, "policy returned None instead of a recommendation"),
        (Recommendation(parallelism={"x": 2}, reason="2"), "policy named unknown operators: x"),
    ],
)
def test_a_nonsense_recommendation_is_refused_by_name(nonsense, problem):
    engine, reports = run(Scripted(nonsense), cycles=1)
    assert reports[0].cycle.problem == problem
    assert engine.requests == []


@pytest.mark.parametrize("answer", [(Recommendation.hold("no"), None), (Recommendation.hold("no"), [1]), None, ()])
def test_an_answer_without_a_memory_is_a_hold_and_the_old_memory_stays(answer):
    class Forgetful:
        def decide(self, observation, memory):
            assert memory == {}
            return answer

    _, reports = run(Forgetful(), cycles=2)
    assert all("policy" in report.cycle.problem for report in reports)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_measure_that_is_no_number_is_the_policys_failure(value):
    class Measures:
        def decide(self, observation, memory):
            return Recommendation(parallelism={"a": 9}, reason="9", measures={"regret": value}), memory

    engine, reports = run(Measures(), cycles=2)
    assert len(reports) == 2
    assert "regret" in reports[0].cycle.problem
    assert engine.requests == []


def test_sizes_are_refused_where_the_engine_cannot_apply_them():
    sized = Recommendation(parallelism={"a": 2}, sizes={"a": {"large": 2}}, reason="2 large")
    engine, reports = run(Scripted(sized), FakeEngine(abilities=frozenset()), cycles=1)
    assert reports[0].cycle.problem == "the policy recommends instance sizes, which this engine cannot apply"
    assert engine.requests == []


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
    assert "no recommendation within 0.05 s" in first.problem
    assert "still busy" in second.problem
    assert first.memory == second.memory == {}
    gate.set()
    decider._overdue.join()
    assert decider.ask(seen, {}).recommendation.parallelism == {"a": 2}


def test_what_was_learned_survives_a_restart(tmp_path):
    store = MemoryStore(tmp_path / "memory.json", "scripted")
    run(Scripted(1), store=store, cycles=2)
    _, reports = run(Scripted(1, 1, 5), store=store, cycles=1)
    assert reports[0].cycle.target.parallelism == {"a": 5}


def test_a_policys_time_goes_on_where_its_memory_was_saved(tmp_path):
    """A run's clock begins at 0: times in the memory of an earlier one would lie in the future."""
    store, seen = MemoryStore(tmp_path / "memory.json", "scripted"), []

    class Watches(Scripted):
        def decide(self, observation, memory):
            seen.append(observation.time_s)
            return super().decide(observation, memory)

    for _ in range(3):
        _, reports = run(Watches(1), store=store, cycles=2)
        assert [report.cycle.time_s for report in reports] == [10, 20]
    assert seen == [10, 20, 30, 40, 50, 60]


class Poisoned(Scripted):
    def decide(self, observation, memory):
        recommendation, learned = super().decide(observation, memory)
        return recommendation, {**learned, "poison": self.poison}


@pytest.mark.parametrize("poison", [math.nan, math.inf, [-math.inf], {"deep": [math.nan]}, {1, 2}, object()])
def test_a_memory_that_cannot_be_saved_is_a_hold_on_record_not_the_end(tmp_path, poison):
    store = MemoryStore(tmp_path / "memory.json", "poisoned")
    policy = Poisoned(3)
    policy.poison = poison
    engine, reports = run(policy, store=store)
    assert len(reports) == 3
    assert engine.requests == []
    assert "the policy's memory cannot be saved" in reports[0].cycle.problem
    assert store.load() == {}


def test_a_disk_that_refuses_the_memory_does_not_end_the_loop(tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError("no space left")

    monkeypatch.setattr("sluice.control.memory.replace_file", full)
    engine, reports = run(Scripted(3), store=MemoryStore(tmp_path / "memory.json", "scripted"))
    assert engine.requests == [{"a": 3}]
    assert reports[1].cycle.events == ("memory was not saved: no space left",)


def test_a_policy_is_told_what_actions_cost_here():
    seen = []

    class Watching(Scripted):
        def decide(self, observation, memory):
            seen.append(observation.action_cost)
            return super().decide(observation, memory)

    engine = FakeEngine(room=1, tick_s=1)

    class Room(Watching):
        def decide(self, observation, memory):
            engine.room = 1 if observation.time_s < 20 else 3
            return super().decide(observation, memory)

    run(Room(3), engine, cycles=4, guards=Guards(cooldown_s=25))
    assert [cost.cooling_s for cost in seen] == [0, 15, 5, 0]
    assert [cost.downtime_s for cost in seen] == [None, 1, 1, 1]
    assert seen[0].start_s is None
    assert seen[-1].start_s == 10
    assert seen[-1].cooldown_s == 25
    assert {cost.most_slots for cost in seen} == {None}


def test_how_long_instances_take_to_leave_is_not_how_long_they_take_to_come():
    seen = []

    class Watching(Scripted):
        def decide(self, observation, memory):
            seen.append(observation.action_cost.start_s)
            return super().decide(observation, memory)

    _, reports = run(Watching(3, 1, 1, 1), Lingering(tick_s=1), cycles=4)
    assert [outcome.detail for outcome in reports[1].outcomes][1:] == ["there after 5 s"]
    assert seen == [None] * 4


def test_shadows_are_asked_and_recorded_and_never_acted_on():
    shadows = {"eager": Decider(Scripted(9)), "broken": Decider(Scripted(ValueError("no idea")))}
    engine, reports = run(Scripted(3), shadows=shadows, guards=Guards(max_parallelism=5))
    assert engine.requests == [{"a": 3}]
    first = reports[0].cycle.shadows
    assert first["eager"].parallelism == {"a": 5}
    assert first["eager"].reason == "wants {'a': 9}"
    assert "no idea" in first["broken"].problem
    assert first["broken"].parallelism == {"a": 1}


def test_a_shadow_is_left_alone_during_the_cooldown_as_it_would_be_on_its_own():
    shadows = {"counting": Decider(Counting())}
    _, reports = run(Scripted(3), shadows=shadows, cycles=4, guards=Guards(cooldown_s=25))
    assert [report.cycle.shadows["counting"].reason for report in reports] == [
        "asked 1 times",
        "cooldown: 15 of 25 s left, the policy is not asked",
        "cooldown: 5 of 25 s left, the policy is not asked",
        "asked 2 times",
    ]


def test_a_journal_without_shadows_does_not_mention_them():
    _, reports = run(Scripted(3))
    assert "shadows" not in reports[0].cycle.to_data()


def test_an_engine_whose_operators_cannot_share_nodes_refuses_a_policy_that_has_them_share():
    class Sharing:
        def decide(self, observation, memory):
            wanted = Recommendation(parallelism={"a": 2}, sizes={"a": {"big": 2}}, shared_nodes=True, reason="shares")
            return wanted, memory

    engine, reports = run(Sharing())
    assert engine.requests == []
    assert "nodes that operators share, which this engine cannot apply" in reports[0].cycle.problem
    able = FakeEngine(abilities=frozenset({"sizes", "shared_nodes"}))
    _, reports = run(Sharing(), able)
    assert reports[0].cycle.target.shared_nodes
