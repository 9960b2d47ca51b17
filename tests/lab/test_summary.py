"""The summary, worked out by hand from a small journal."""

import pytest

from sluice.errors import BadInputError
from sluice.lab.summary import summarise


def cycle(slots, latencies, *, arrival=100.0, read=90.0, applied=None):
    return {
        "kind": "cycle",
        "observation": {
            "interval_s": 10.0,
            "latency_samples_s": latencies,
            "operators": {
                "source": {"parallelism": slots, "arrival_rate": arrival, "input_rate": read},
                "sink": {"parallelism": 1, "arrival_rate": None, "input_rate": read},
            },
        },
        "applied": applied,
    }


def test_the_figures_of_a_small_run():
    entries = [
        {"kind": "run"},
        cycle(1, [0.0, 10.0], applied={"error": None}),
        cycle(3, [40.0, 50.0], applied={"error": "no slots"}),
        {"kind": "end", "records": {"downtime_s": 4.0, "lost": 0, "duplicated": 0}},
    ]
    summary = summarise(entries, slo_s=30)
    assert (summary.avg_slots, summary.max_slots, summary.slot_seconds) == (3.0, 4, 60.0)
    assert (summary.avg_latency_s, summary.p50_latency_s, summary.max_latency_s) == (25.0, 25.0, 50.0)
    assert summary.p95_latency_s == pytest.approx(48.5)
    assert summary.rescales == 1
    assert summary.throughput_ratio == pytest.approx(0.9)
    assert summary.slo_violation_ratio == 0.5
    assert (summary.downtime_s, summary.lost_records) == (4.0, 0)


def test_an_empty_journal_cannot_be_summarised():
    with pytest.raises(BadInputError, match="no cycle"):
        summarise([{"kind": "run"}], slo_s=30)
