"""What became of a cycle, said in one place."""

import pytest

from sluice.errors import BadInputError
from sluice.journal.results import result_of, runs_of
from tests.journal.records import cycle, end, header, outcome


@pytest.mark.parametrize(
    ("action", "outcomes", "kind", "is_action"),
    [
        ("none", [], "held", False),
        ("cooldown", [], "cooldown", False),
        ("dry_run", [], "would_scale", False),
        ("apply", [], "waiting", True),
        ("apply", [outcome(0, 1, 2)], "scaled", True),
        ("apply", [outcome(0, 1, 2, status="waiting", observed=1)], "waiting", True),
        ("apply", [outcome(0, 1, 2, status="waiting", observed=1), outcome(0, 1, 2)], "scaled", True),
        ("apply", [outcome(0, 1, 2, status="unfulfilled", observed=1)], "unfulfilled", True),
        ("apply", [outcome(0, 1, 2, status="failed", error="no")], "failed", False),
    ],
)
def test_the_last_outcome_decides(action, outcomes, kind, is_action):
    proposed = 3 if action in ("cooldown", "dry_run") else None
    result = result_of(cycle(0, action=action, proposed=proposed), outcomes)
    assert (result.kind, result.is_action) == (kind, is_action)


def test_the_change_is_that_of_the_request_and_what_is_missing_that_of_the_end():
    first = outcome(0, 1, 4, status="waiting", observed=1, downtime_s=2.0, detail="requested")
    last = outcome(0, 1, 4, status="unfulfilled", observed=3)
    result = result_of(cycle(0, action="apply"), [first, last])
    assert result.changed == {"source": (1, 4)}
    assert result.missing == {"source": 3}
    assert (result.downtime_s, result.detail) == (2.0, "requested")


def test_a_journal_with_two_headers_is_two_runs():
    first, second = runs_of([header(), cycle(0), end(), header(seed=1), cycle(0), cycle(1)])
    assert len(first.reports) == 1
    assert first.end is not None
    assert second.header.seed == 1
    assert len(second.reports) == 2
    assert second.end is None


@pytest.mark.parametrize(("records", "message"), [([], "is empty"), ([cycle(0)], "does not begin with what runs")])
def test_a_journal_without_a_header_is_refused(records, message):
    with pytest.raises(BadInputError, match=message):
        runs_of(records)
