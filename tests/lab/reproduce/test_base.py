import pytest

from sluice.lab.reproduce.base import UNKNOWN_CAUSE, Table, Verdict, claim, count_verdicts, figure, order, shown


@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        (2.4, 2.4, Verdict.MATCHES),
        (2.4, 2.99, Verdict.MATCHES),
        (2.4, 3.01, Verdict.DIFFERS),
        (2.4, None, Verdict.NOT_COMPARABLE),
        (None, 2.4, Verdict.NOT_COMPARABLE),
    ],
)
def test_a_figure_matches_within_the_tolerance(paper, ours, verdict):
    assert figure("ds2", paper, ours).verdict == verdict


def test_a_difference_without_an_ablation_has_no_cause():
    assert figure("ds2", 1.0, 2.0).note == UNKNOWN_CAUSE
    assert figure("ds2", 1.0, 2.0, cause="with the zero mean it is 1.1").note == "with the zero mean it is 1.1"
    assert figure("ds2", 1.0, 1.0, cause="unused").note == ""


def test_a_figure_below_the_resolution_matches_whatever_its_ratio():
    assert figure("median latency", 0.013, 0.6, least=1.0).verdict == Verdict.MATCHES
    assert figure("median latency", 0.013, 1.6, least=1.0).verdict == Verdict.DIFFERS


PAPER = {"ds2": 2.40, "big-ds2": 2.37, "conttune": 1.29}


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ({"ds2": [2.0, 2.1, 2.0], "big-ds2": [1.9, 2.0, 1.9], "conttune": [1.5, 1.5, 1.5]}, Verdict.ORDER_HOLDS),
        # a tie by the interval: the difference changes its sign from seed to seed
        ({"ds2": [2.0, 2.1, 2.0], "big-ds2": [2.1, 2.0, 2.0], "conttune": [1.5, 1.5, 1.5]}, Verdict.ORDER_HOLDS),
        # small, but the same in every seed: no tie
        ({"ds2": [2.0, 2.1, 2.0], "big-ds2": [2.01, 2.11, 2.01], "conttune": [1.5, 1.5, 1.5]}, Verdict.DIFFERS),
        ({"ds2": [2.0], "big-ds2": [2.1], "conttune": [1.5]}, Verdict.DIFFERS),
        # nothing but ties decides nothing
        ({"ds2": [1.0, 9.0], "big-ds2": [9.0, 1.0], "conttune": [2.0, 8.5]}, Verdict.NOT_COMPARABLE),
    ],
)
def test_an_order_holds_only_if_every_printed_pair_agrees_or_is_a_tie_by_the_intervals(ours, verdict):
    assert order("mean", PAPER, ours).verdict == verdict


def test_the_pairs_that_changed_places_are_named():
    row = order("mean", PAPER, {"ds2": [2.0], "big-ds2": [1.9], "conttune": [2.5]})
    assert "1 of 3 pairs agree, 0 tie" in row.note
    assert "conttune is not below ds2; conttune is not below big-ds2" in row.note
    assert row.note.endswith(UNKNOWN_CAUSE)
    assert row.ours == "big-ds2 < ds2 < conttune"


def test_methods_that_the_paper_prints_alike_have_no_order():
    row = order("phase", {"a": 40.0, "b": 40.0, "c": 10.0}, {"a": [1.0], "b": [5.0], "c": [0.5]})
    assert row.verdict == Verdict.ORDER_HOLDS
    assert row.note == "2 of 2 pairs agree, 0 tie"


def test_a_claim_is_held_against_what_the_papers_own_figures_say():
    assert claim("fewer samples", "15 and 12", "9 and 12", True, said=False).verdict == Verdict.DIFFERS
    assert claim("fewer samples", "15 and 12", "13 and 12", False, said=False).verdict == Verdict.CLAIM_HOLDS


def test_every_figure_is_counted_once_and_fitted_ones_apart():
    rows = (
        figure("a", 1.0, 1.0),
        figure("b", 1.0, 1.0, fitted=True),
        figure("a again", 1.0, 1.0, same_as="7.1"),
        shown("c", 2.0, 1.0, note="another machine"),
        shown("only ours", None, 1.0),
    )
    counts = count_verdicts([Table(name="t", title="t", rows=rows)])
    assert counts["held_out"] == {
        "matches": 1,
        "order holds": 0,
        "claim holds": 0,
        "differs": 0,
        "not comparable": 1,
    }
    assert counts["fitted"]["matches"] == 1
