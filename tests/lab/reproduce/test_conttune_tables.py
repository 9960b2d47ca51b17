import json

import pytest

from sluice.errors import BadInputError
from sluice.lab.reproduce import Verdict, reproductions
from sluice.lab.reproduce.conttune import ContTuneTables
from sluice.lab.reproduce.conttune_jobs import MAPPER_CURVE, QUERIES, tuned_job
from sluice.lab.reproduce.conttune_runs import METHODS, Trial, tune
from sluice.lab.simulator.capacity import read_curve

OPERATORS = {"WordCount": 3, "Q1": 3, "Q2": 3, "Q3": 5, "Q5": 3, "Q8": 4}
"""Section 7.1 of the paper."""


@pytest.mark.parametrize("name", QUERIES)
def test_the_largest_operator_needs_just_the_cores_of_the_paper_at_the_highest_load(name):
    query = QUERIES[name]
    job = tuned_job(query, 0.0, MAPPER_CURVE)
    assert len(job.operators) == OPERATORS[name]
    rates = query.rates_at_ten()
    needed = {
        operator.name: next(p for p in range(1, 91) if operator.capacity(p) >= rates[operator.name])
        for operator in job.operators
    }
    assert max(needed.values()) == query.cores


def test_query_one_keeps_the_published_curve_within_two_percent():
    mapper = next(op for op in tuned_job(QUERIES["Q1"], 0.0, MAPPER_CURVE).operators if op.name == "map")
    assert all(mapper.capacity(p) == pytest.approx(rate, rel=0.02) for p, rate in MAPPER_CURVE.items())


def test_conttune_needs_fewer_reconfigurations_than_ds2_and_that_fewer_than_dhalion():
    counts = [
        tune(Trial(method, "WordCount", 0, 0.098)).reconfigurations for method in ("ours, alpha 3", "DS2", "Dhalion")
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_the_paper_mode_is_conttune_without_what_we_added():
    from sluice.protocol import policies

    name, settings = METHODS["ContTune 3"]
    made = policies.create(name, dict(settings))
    assert (made.process, made.new_loads, made.forget_beyond, made.real_rates) == ("zero-mean", False, 0.0, "received")


def test_a_table_has_the_papers_figure_beside_ours_and_a_verdict_in_every_row():
    table = reproductions.create("conttune", {"permutations": "1"}).run("8", lambda _: None)
    assert [row.paper for row in table.rows[:3]] == [275.0, 164.0, 151.0]
    assert all(row.ours is not None for row in table.rows)
    assert table.rows[-1].verdict == Verdict.NOT_COMPARABLE


def test_without_traces_figure_seven_says_so():
    table = ContTuneTables().run("figure7", lambda _: None)
    assert {row.verdict for row in table.rows} == {Verdict.NOT_COMPARABLE}


def test_a_second_curve_is_read_from_a_file(tmp_path):
    path = tmp_path / "curve.json"
    path.write_text(json.dumps({"capacity": {"1": 10.0, "4": 35.0}}))
    assert read_curve(str(path)).points == {1: 10.0, 4: 35.0}
    path.write_text("[]")
    with pytest.raises(BadInputError, match="capacity"):
        read_curve(str(path))


def test_a_table_that_is_not_there_is_refused_by_name():
    with pytest.raises(BadInputError, match=r"unknown table of conttune '9'; known: 4a"):
        ContTuneTables().run("9", print)
