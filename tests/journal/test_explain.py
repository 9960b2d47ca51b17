"""Explaining a journal: every action with its reason and what came of it."""

from sluice.journal.explain import explain, held_back
from sluice.journal.records import Outcome
from tests.journal.records import cycle, outcome, run


def test_every_action_is_explained_with_its_reason_and_its_outcome():
    first, second = explain(
        run(
            cycle(0, 30.0, 100.0, action="apply", notes=("only 2 slots: source 3 -> 2",)),
            outcome(0, 1, 2, downtime_s=4.0),
            cycle(1, 20.0, 150.0),
            cycle(2, 1.0, 180.0, action="apply"),
            outcome(2, 2, 3, status="failed", error="no slots"),
        )
    )
    assert first.sentence() == (
        "  0:15 source 1 -> 2. Why: source 1 -> 2 for 150 rec/s at 100 each. Guards: only 2 slots: source 3 -> 2. "
        "It stood still for 4.0 s; 30 s later: latency 30.0s -> 1.0s, read 100/s -> 180/s."
    )
    assert "failed, nothing changed (source: no slots)" in second.sentence()


def test_the_outcome_is_the_last_that_is_known():
    acted = (cycle(0, 30.0, 100.0, action="apply"), outcome(0, 1, 2))
    blind = cycle(2, None, None)
    (one,) = explain(run(*acted, cycle(1, 20.0, 150.0), blind))
    assert one.outcome == "15 s later: latency 30.0s -> 20.0s, read 100/s -> 150/s."
    (one,) = explain(run(*acted, blind))
    assert one.outcome == "30 s later: latency 30.0s -> unknown, read 100/s -> unknown."


def test_tasks_that_only_move_were_placed_anew_and_what_that_took_is_said():
    moved = Outcome(cycle=0, time_s=15.0, status="done", detail="placement moves 3 of 6 state partitions of count")
    (one,) = explain(run(cycle(0, action="apply"), moved, cycle(1)))
    assert one.sentence().startswith("  0:15 placed anew (placement moves 3 of 6 state partitions of count). Why: ")


def test_what_was_held_back_is_counted_by_cause():
    records = [
        cycle(0, action="cooldown", proposed=3),
        cycle(1, action="cooldown", proposed=3),
        cycle(2, problem="policy failed: ValueError: x"),
    ]
    assert held_back(run(*records)) == {"cooldown": 2, "policy failed: ValueError: x": 1}


def test_a_dry_run_shows_each_proposal_once_and_that_nothing_was_done():
    proposals = [None, 4, 4, 3, None]
    records = [
        cycle(number, action="none" if proposed is None else "dry_run", proposed=proposed)
        for number, proposed in enumerate(proposals)
    ]
    sentences = [one.sentence() for one in explain(run(*records))]
    assert [sentence.partition(".")[0] for sentence in sentences] == [
        "  0:30 would scale source 2 -> 4",
        "  1:00 would scale source 2 -> 3",
    ]
    assert all(sentence.endswith("Dry run: nothing was done.") for sentence in sentences)


def test_what_an_action_has_not_reached_is_said():
    detail = "requested 4 executors, 2 are there"
    (one,) = explain(
        run(
            cycle(0, 9.0, 100.0, action="apply"),
            outcome(0, 2, 4, status="waiting", observed=2, detail=detail),
            cycle(1, 8.0, 100.0, parallelism=3),
        )
    )
    assert f"source 2 -> 4 ({detail})." in one.sentence()
    assert one.sentence().endswith("source has 3.")


def test_a_request_that_was_not_fulfilled_says_so():
    (one,) = explain(
        run(
            cycle(0, action="apply"),
            outcome(0, 2, 4, status="waiting", observed=2),
            cycle(1),
            outcome(0, 2, 4, status="unfulfilled", observed=3, detail="after 30 s source has 3 of 4"),
        )
    )
    assert one.change == "source 2 -> 4 (after 30 s source has 3 of 4)"


def test_an_action_that_failed_in_part_names_both():
    records = [cycle(0, action="apply", names=("a", "b")), outcome(0, 1, 2, status="partly", names=("a",))]
    broken = outcome(0, 1, 2, names=("b",), error="no state").operators
    records[1] = records[1].model_copy(update={"operators": {**records[1].operators, **broken}})
    (one,) = explain(run(*records))
    assert one.change == "a 1 -> 2; failed: b: no state"


def test_queries_that_share_executors_are_one_change():
    names = ("a", "b")
    (one,) = explain(
        run(
            cycle(0, 9.0, names=names, action="apply"),
            outcome(0, 1, 4, names=names),
            cycle(1, 8.0, names=("b", "c"), parallelism=4),
            engine="attach",
        )
    )
    assert one.change == "executors 1 -> 4"
    assert "has" not in one.outcome
