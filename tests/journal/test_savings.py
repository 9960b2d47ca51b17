"""What an attachment saved, by journals small enough to count by hand: windows of 15 s."""

import json

import pytest

from sluice.cli import main
from sluice.journal.file import FileJournal
from sluice.journal.savings import savings_of
from sluice.model import OperatorMetrics
from tests.journal.records import cycle, header, outcome, run

ATTACHED = {"engine": "attach", "slo_s": 10.0, "settings": {"min_executors": 1, "max_executors": 4}}
HOUR_S = 3600.0


def story():
    """1 executor, late; 1 -> 3 for four windows; 3 -> 1 for two."""
    return [
        cycle(0, latency_s=2.0, parallelism=1),
        cycle(1, latency_s=20.0, parallelism=1, target=3, action="apply"),
        outcome(1, 1, 3),
        cycle(2, latency_s=20.0, parallelism=3),
        cycle(3, latency_s=5.0, parallelism=3),
        cycle(4, latency_s=None, parallelism=3),
        cycle(5, latency_s=5.0, parallelism=3, target=1, action="apply"),
        outcome(5, 3, 1),
        cycle(6, latency_s=2.0, parallelism=1),
        cycle(7, latency_s=2.0, parallelism=1),
    ]


def test_executor_hours_against_the_fixed_maximum_and_minimum():
    found = savings_of([run(*story(), **ATTACHED)])
    # eight windows: 1, 1, 3, 3, 3, 3, 1, 1
    assert found.duration_s == 8 * 15
    assert found.used_h == pytest.approx(16 * 15 / HOUR_S)
    assert found.at_maximum_h == pytest.approx(8 * 4 * 15 / HOUR_S)
    assert found.at_minimum_h == pytest.approx(8 * 15 / HOUR_S)
    assert found.saved_ratio == pytest.approx(0.5)
    assert (found.most_used, found.batches, found.late_batches) == (3, 7, 2)


def test_every_batch_counts_and_one_that_still_runs_does_not():
    ended, running = cycle(0, latency_s=2.0), cycle(1, latency_s=90.0)
    three = ended.observation.model_copy(update={"latency_samples_s": (2.0, 30.0, 4.0)})
    metrics = OperatorMetrics(parallelism=2, latency_s=90.0)
    unfinished = running.observation.model_copy(update={"operators": {"source": metrics}})
    records = [ended.model_copy(update={"observation": three}), running.model_copy(update={"observation": unfinished})]
    found = savings_of([run(*records, **ATTACHED)])
    assert (found.batches, found.late_batches) == (3, 1)
    assert "Late by the objective of 10 s: 1 of 3 batches." in found.sentences()


def test_decisions_count_until_the_next_one():
    up, down = savings_of([run(*story(), **ATTACHED)]).decisions
    assert (up.before, up.after, up.lasted_s, up.executor_s) == (1, 3, 60.0, 120.0)
    assert (up.late_before, up.late_after) == ((1, 2), (1, 3))
    assert (down.executor_s, down.late_before, down.late_after) == (-60.0, (1, 3), (0, 2))
    assert up.sentence() == (
        "0:30 executors 1 -> 3 for 60 s: 120 executor-seconds more, batches late 1 of 2 before and 1 of 3 after. "
        "Why: source 1 -> 2 for 150 rec/s at 100 each."
    )
    assert "60 executor-seconds fewer" in down.sentence()


def test_of_many_decisions_the_three_that_moved_most_are_shown_in_order():
    records, number = [], 0
    for windows in (1, 9, 1, 8, 1, 7, 1):
        records += [cycle(number, parallelism=1, target=2, action="apply"), outcome(number, 1, 2)]
        number += 1
        for _ in range(windows):
            records.append(cycle(number, parallelism=2))
            number += 1
    found = savings_of([run(*records, **ATTACHED)]).decisions
    # with the window of the next decision
    assert [one.lasted_s for one in found] == [150.0, 135.0, 120.0]


def test_an_action_that_ended_lateness_matters_however_few_executors_it_moved():
    records = [cycle(0, parallelism=1, target=2, action="apply", latency_s=50.0), outcome(0, 1, 2)]
    records += [cycle(1, parallelism=2, latency_s=1.0, target=8, action="apply"), outcome(1, 2, 8)]
    for number, (before, after) in enumerate([(8, 2), (2, 8), (8, 2)], start=2):
        records += [cycle(number, parallelism=before, target=after, action="apply"), outcome(number, before, after)]
    records.append(cycle(5, parallelism=2))
    found = savings_of([run(*records, **ATTACHED)]).decisions
    assert found[0].time_s == 15.0
    assert found[0].late_change == -1.0


def test_without_an_objective_nothing_is_late_and_a_price_makes_money():
    found = savings_of([run(*story(), **{**ATTACHED, "slo_s": None})], price=36.0)
    assert found.late_batches is None
    first, second, *_ = found.sentences()
    assert first == (
        "In 2 min the job used 0.0667 executor-hours (2.40); fixed at the maximum 0.133 (4.80), "
        "at the minimum 0.0333 (1.20). That is 50% below the maximum (2.40)."
    )
    assert second == "No latency objective was set: nothing is counted as late."
    assert found.to_data()["cost"] == pytest.approx({"used": 2.4, "at_maximum": 4.8, "at_minimum": 1.2})


def test_a_dry_run_counts_what_would_have_been():
    records = [
        cycle(0, parallelism=4, target=4, proposed=1, action="dry_run"),
        cycle(1, parallelism=4, target=4, proposed=1, action="dry_run"),
    ]
    found = savings_of([run(*records, dry_run=True, **ATTACHED)])
    assert found.used_h == pytest.approx(30 / HOUR_S)
    assert found.sentences()[0].startswith("In 30 s the job would have used 0.00833 executor-hours")
    assert found.decisions == ()


def test_attachments_of_one_journal_add_up_and_other_runs_have_no_savings():
    one = savings_of([run(*story(), **ATTACHED)])
    two = savings_of([run(*story(), **ATTACHED), run(*story(), **ATTACHED)])
    assert two.used_h == pytest.approx(2 * one.used_h)
    assert two.late_batches == 2 * one.late_batches
    assert savings_of([run(*story())]) is None
    assert savings_of([run(**ATTACHED)]) is None


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "journal.jsonl"
    file = FileJournal(path)
    for record in (header(**ATTACHED), *story()):
        file.append(record)
    file.close()
    return path


def called(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_explain_ends_with_what_was_saved(journal, capsys):
    said = called(capsys, "explain", journal, "--price", "36")
    assert "the job used 0.0667 executor-hours (2.40)" in said
    assert "2 of 7 batches" in said
    found = json.loads(called(capsys, "explain", journal, "--json"))
    assert found["savings"]["late_batches"] == 2
    assert "cost" not in found["savings"]


def test_a_report_begins_with_what_was_saved(journal, capsys):
    found = json.loads(called(capsys, "report", journal, "--json", "--price", "36"))
    assert found["savings"]["journal.jsonl"]["cost"]["used"] == pytest.approx(2.4)
    page = (journal.parent / "report.html").read_text()
    beginning = page[: page.index("Slots against latency")]
    assert "the job used 0.0667 executor-hours (2.40)" in beginning
    assert "executors 1 -&gt; 3 for 60 s" in beginning
