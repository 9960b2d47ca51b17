"""Explaining a journal: every action with its reason and what came of it."""

from sluice.journal.explain import explain, held_back


def cycle(
    time_s,
    latency_s,
    rate,
    *,
    applied=None,
    cooling=False,
    problem=None,
    notes=(),
    parallelism=2,
    wish=2,
    dry_run=False,
):
    return {
        "kind": "cycle",
        "time_s": time_s,
        "observation": {
            "time_s": time_s,
            "latency_samples_s": [latency_s],
            "operators": {"source": {"arrival_rate": rate, "input_rate": rate, "parallelism": parallelism}},
        },
        "decision": {"reason": "source 1 -> 2 for 150 rec/s at 100 each"},
        "plan": {"notes": list(notes), "parallelism": {"source": wish}},
        "dry_run": dry_run,
        "problem": problem,
        "cooling": cooling,
        "applied": applied,
    }


def change(before, after, *, error=None, downtime_s=0.0):
    return {"changed": {"source": [before, after]}, "downtime_s": downtime_s, "detail": None, "error": error}


def test_every_action_is_told_with_its_reason_and_its_outcome():
    entries = [
        {"kind": "run"},
        cycle(15, 30.0, 100.0, applied=change(1, 2, downtime_s=4.0), notes=["only 2 slots: source 3 -> 2"]),
        cycle(30, 20.0, 150.0),
        cycle(45, 1.0, 180.0, applied=change(2, 3, error="no slots")),
        {"kind": "end"},
    ]
    first, second = explain(entries)
    assert first.sentence() == (
        "  0:15 source 1 -> 2. Why: source 1 -> 2 for 150 rec/s at 100 each. Guards: only 2 slots: source 3 -> 2. "
        "It stood still for 4.0 s; 30 s later: latency 30.0s -> 1.0s, read 100/s -> 180/s."
    )
    assert "failed, nothing changed (no slots)" in second.sentence()


def test_the_outcome_is_the_last_that_is_known():
    blind = cycle(45, 1.0, None)
    blind["observation"]["latency_samples_s"] = []
    acted = cycle(15, 30.0, 100.0, applied=change(1, 2))
    (told,) = explain([acted, cycle(30, 20.0, 150.0), blind])
    assert told.outcome == "15 s later: latency 30.0s -> 20.0s, read 100/s -> 150/s."
    (told,) = explain([acted, blind])
    assert told.outcome == "30 s later: latency 30.0s -> unknown, read 100/s -> unknown."


def test_what_was_held_back_is_counted_by_cause():
    entries = [
        cycle(15, 0, 1, cooling=True),
        cycle(30, 0, 1, cooling=True),
        cycle(45, 0, 1, problem="policy failed: ValueError: x"),
    ]
    assert held_back(entries) == {"cool-down": 2, "policy failed: ValueError: x": 1}


def test_a_dry_run_tells_each_wish_once_and_that_nothing_was_done():
    wishes = [2, 4, 4, 3, 2]
    told = explain([cycle(15 * n, 1.0, 100.0, wish=wish, dry_run=True) for n, wish in enumerate(wishes, start=1)])
    sentences = [one.sentence() for one in told]
    assert [sentence.partition(".")[0] for sentence in sentences] == [
        "  0:30 would scale source 2 -> 4",
        "  1:00 would scale source 2 -> 3",
    ]
    assert all(sentence.endswith("Dry run: nothing was done.") for sentence in sentences)


def test_what_an_action_has_not_reached_is_told():
    asked = {**change(2, 4), "detail": "asked for 4 executors, 2 are there"}
    (told,) = explain([cycle(15, 9.0, 100.0, applied=asked), cycle(30, 8.0, 100.0, parallelism=3)])
    assert "source 2 -> 4 (asked for 4 executors, 2 are there)." in told.sentence()
    assert told.sentence().endswith("source has 3.")


def test_queries_that_share_executors_are_told_as_one_change():
    asked = {"changed": {"a": [1, 4], "b": [1, 4]}, "downtime_s": 0.0, "detail": None, "error": None}
    head = {"kind": "run", "engine": "attach"}
    (told,) = explain([head, cycle(15, 9.0, 100.0, applied=asked), cycle(30, 8.0, 100.0)])
    assert told.change == "executors 1 -> 4"
