import pytest

from sluice.errors import BadInputError
from sluice.lab.reproduce import Verdict, reproductions
from sluice.lab.reproduce.conttune import MAPPER_CAPACITY, METHODS, QUERIES, ContTuneTables, tuned_job


@pytest.mark.parametrize("name", QUERIES)
def test_the_tuned_operator_needs_just_the_cores_of_the_paper_at_the_highest_load(name):
    query = QUERIES[name]
    capacity = tuned_job(query, noise=0.0).operators[1].capacity
    assert capacity(query.cores) >= 10 * query.unit_rate > capacity(query.cores - 1)


def test_query_one_keeps_the_published_curve_within_two_percent():
    capacity = tuned_job(QUERIES["Q1"], noise=0.0).operators[1].capacity
    assert all(capacity(p) == pytest.approx(rate, rel=0.02) for p, rate in MAPPER_CAPACITY.items())


def test_conttune_needs_fewer_reconfigurations_than_ds2_and_that_fewer_than_dhalion():
    tables, query = ContTuneTables(permutations=1), QUERIES["WordCount"]
    counts = [tables.count(query, METHODS[name](query), 0) for name in ("ContTune 3", "DS2", "Dhalion")]
    assert counts == sorted(counts)
    assert counts[0] < 36


def test_a_table_has_the_papers_figure_beside_ours_and_a_verdict_in_every_row():
    said = []
    table = reproductions.create("conttune", {"permutations": "1"}).run("8", said.append)
    assert [row.paper for row in table.rows[:3]] == [275.0, 164.0, 151.0]
    assert all(row.ours is not None for row in table.rows)
    assert table.rows[-1].verdict == Verdict.ORDER_HOLDS
    assert len(said) == 3


def test_a_table_that_is_not_there_is_refused_by_name():
    with pytest.raises(BadInputError, match=r"unknown table of conttune '5'; known: 4a, 8"):
        ContTuneTables().run("5", print)
