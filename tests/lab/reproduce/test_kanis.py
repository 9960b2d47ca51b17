"""The thesis' tables beside ours."""

import pytest

from sluice.lab.reproduce import Verdict, reproductions
from sluice.lab.reproduce.kanis import as_written, first_printed
from sluice.lab.reproduce.kanis_figures import TABLES


def test_every_table_of_chapter_7_is_there():
    assert reproductions.create("kanis").tables() == tuple(f"7.{number}" for number in range(1, 20))


def test_rates_are_the_thesis_own():
    table = reproductions.create("kanis").run("7.17", lambda _: None)
    assert {row.verdict for row in table.rows} == {Verdict.MATCHES}


@pytest.mark.slow
def test_more_over_provisioning_costs_slots_and_saves_latency():
    table = reproductions.create("kanis", {"seeds": "3"}).run("7.3", lambda _: None)
    rows = {row.what: row for row in table.rows}
    assert len(table.rows) == 3 * 6 + 2
    slots = rows["ds2:over_provisioning=1.2: mean slots"]
    assert slots.verdict == Verdict.MATCHES
    assert slots.fitted
    assert rows["order by mean slots"].verdict == Verdict.ORDER_HOLDS
    latencies = [rows[f"ds2:over_provisioning={factor}: mean latency"].ours for factor in ("1.0", "1.2", "1.4")]
    assert latencies == sorted(latencies, reverse=True)
    # the intervals of three seeds overlap
    assert rows["order by mean latency"].verdict in (Verdict.ORDER_HOLDS, Verdict.NOT_COMPARABLE)


@pytest.mark.slow
def test_who_settles_is_told_per_stage():
    table = reproductions.create("kanis", {"seeds": "1"}).run("7.19", lambda _: None)
    assert [row.what for row in table.rows][:2] == ["q1 dhalion, stage 1", "q1 dhalion, stage 2"]
    assert len(table.rows) == 16 + 2 * 3
    assert all(row.note for row in table.rows if row.verdict == Verdict.DIFFERS)


@pytest.mark.parametrize(
    ("pipeline", "label", "column", "value", "first"),
    [
        ("q1", "ds2:over_provisioning=1.2", "avg_slots", 9.4, "7.3"),
        ("q1", "hpa-cpu:target=0.7", "avg_latency_s", 8.6, "7.9"),
        ("q1", "hpa-cpu:target=0.7", "avg_latency_s", 6.4, "7.7"),
        ("q2", "ds2:over_provisioning=1.2", "avg_slots", 8.9, ""),
    ],
)
def test_a_figure_printed_twice_is_counted_in_the_first_table(pipeline, label, column, value, first):
    assert first_printed(pipeline, "cosine", label, column, value) == first


def test_the_rules_are_those_of_the_thesis():
    assert as_written("ds2").settings == {"least_drop": 1}
    assert as_written("dhalion:scale_down_factor=1.1").settings == {
        "scale_down_rule": "subtract",
        "scale_down_factor": "1.1",
    }


def test_settings_exist():
    from sluice.journal.records import Choice
    from sluice.protocol import policies

    for table in TABLES.values():
        for label in table.rows:
            choice = Choice.parse_text(label)
            policies.create(choice.name, choice.settings)
