"""What a job carries at its limit, from windows as Spark with bounded topics shows them."""

from __future__ import annotations

import pytest

from sluice.dataflow.job_limit import carried_at_limit
from sluice.model import Observation, OperatorMetrics
from sluice.policies.sluice import Sluice
from tests.policies.jobs import decisions

FILLING = {"arrival_rate": 18_000.0, "input_rate": 21_000.0, "output_rate": 19_000.0, "busy": 0.5}
BEHIND = {"lag": 120_000.0, "lag_rate": 3_000.0}
FULL_MAP = {
    "parallelism": 1,
    "input_rate": 4_600.0,
    "output_rate": 4_600.0,
    "busy": 1.0,
    "lag": 100_000.0,
    "lag_rate": 15_000.0,
    "buffer_usage": 1.0,
    "batch_interval_s": 1.0,
}


def window(source: dict[str, float | None], mapped: dict[str, float | None], time_s: float = 10.0) -> Observation:
    return Observation(
        time_s=time_s,
        interval_s=5.0,
        operators={
            "source": OperatorMetrics(parallelism=6, batch_interval_s=1.0, **{**BEHIND, **source}),
            "map": OperatorMetrics(**{**FULL_MAP, **mapped}),
        },
        edges=(("source", "map"),),
    )


def carried(source: dict[str, float | None], mapped: dict[str, float | None] | None = None) -> float | None:
    return carried_at_limit(window(source, mapped or {}), {"source": 1.0}, {"source": 1.0, "map": 0.92}, ["map"])


def test_what_fills_the_next_input_is_not_carried() -> None:
    assert carried(FILLING) == pytest.approx(4_600.0 / 0.92)


def test_a_source_that_reads_nothing_because_it_must_wait_still_tells_of_the_limit() -> None:
    blocked = {"arrival_rate": 18_000.0, "input_rate": None, "backpressure": 1.0}
    assert carried(blocked) == pytest.approx(4_600.0 / 0.92)
    assert carried(blocked | {"lag": 1_000.0}) is None, "the load has no backlog, so nothing was at its limit"


def test_a_source_that_idles_because_it_must_wait_is_no_idle_source() -> None:
    idle = FILLING | {"busy": 0.4}
    free = {"lag": 0.0, "lag_rate": 0.0}
    assert carried(idle, free) is None, "executors that start look like that"
    assert carried(idle | {"backpressure": 0.6}, free) == pytest.approx(21_000.0)


def test_the_operator_that_makes_sources_wait_grows_in_the_window_that_shows_it() -> None:
    """Before, the source's reading was believed for as long as it then read nothing: 30 s late and no action."""
    first = window(FILLING | {"lag": 60_000.0, "lag_rate": 12_000.0}, {"lag": 26_000.0, "lag_rate": 5_000.0}, 5.0)
    grown = decisions(Sluice(objective_s=10.0), [first, window(FILLING, {})])[-1]
    assert grown.parallelism["map"] >= 4, grown.reason
