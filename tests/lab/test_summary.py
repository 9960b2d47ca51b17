"""The summary, worked out by hand from a small journal."""

import pytest

from sluice.errors import BadInputError
from sluice.journal.records import End, RecordCount
from sluice.journal.results import CycleReport
from sluice.lab.summary import summarise
from sluice.model import NodeTypeMetrics, Observation, OperatorMetrics
from tests.journal.records import cycle, outcome


def report(number, slots, latencies, *outcomes, arrival=100.0, read=90.0):
    seen = Observation(
        time_s=10.0 * (number + 1),
        interval_s=10.0,
        latency_samples_s=latencies,
        operators={
            "source": OperatorMetrics(parallelism=slots, arrival_rate=arrival, input_rate=read),
            "sink": OperatorMetrics(parallelism=1, input_rate=read),
        },
    )
    found = cycle(number, action="apply" if outcomes else "none").model_copy(update={"observation": seen})
    return CycleReport(found, outcomes)


REPORTS = [
    report(0, 1, (0.0, 10.0), outcome(0, 1, 3)),
    report(1, 3, (40.0, 50.0), outcome(1, 3, 4, status="failed", error="no slots")),
]


def test_the_figures_of_a_small_run():
    counted = RecordCount(arrived=9, processed=9, waiting=0, lost=0, duplicated=0, downtime_s=4.0)
    summary = summarise(REPORTS, End(time_s=20.0, records=counted), slo_s=30)
    assert (summary.avg_slots, summary.max_slots, summary.slot_seconds) == (3.0, 4, 60.0)
    assert (summary.avg_latency_s, summary.p50_latency_s, summary.max_latency_s) == (25.0, 25.0, 50.0)
    assert summary.p95_latency_s == pytest.approx(48.5)
    assert summary.rescales == 1
    assert summary.throughput_ratio == pytest.approx(0.9)
    assert summary.slo_violation_ratio == 0.5
    assert (summary.downtime_s, summary.lost_records) == (4.0, 0)


def test_the_price_is_that_of_all_nodes_paid_for():
    assert summarise(REPORTS, None, slo_s=30).price is None
    paid = {
        "small": NodeTypeMetrics(nodes=3, price_per_hour=36.0, start_s=0),
        "large": NodeTypeMetrics(nodes=0, price_per_hour=99.0, start_s=0),
    }
    seen = REPORTS[0].cycle.observation.model_copy(update={"node_types": paid})
    priced = CycleReport(REPORTS[0].cycle.model_copy(update={"observation": seen}), REPORTS[0].outcomes)
    assert summarise([priced, priced], None, slo_s=30).price == pytest.approx(2 * 3 * 36.0 * 10 / 3600)


def test_operators_that_share_their_instances_are_counted_once():
    assert summarise(REPORTS, None, slo_s=30, shared=True).slot_seconds == 40.0


def test_an_empty_journal_cannot_be_summarised():
    with pytest.raises(BadInputError, match="no cycle"):
        summarise([], None, slo_s=30)
