"""What a profile says, from measurements made up for the purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice.errors import BadInputError
from sluice.lab.datasets import StoredDataset
from sluice.lab.pipelines import pipelines
from sluice.lab.profiling import MeasurementPlan, OperatorMeasurement, _profile
from sluice.processes import cpu_seconds

HOW = MeasurementPlan(parallelisms=(1, 2, 4))


def dataset(records: int, size_bytes: int = 0) -> StoredDataset:
    return StoredDataset(Path("nowhere"), None, records, size_bytes)


def seen(rate: float, cpu_s: float | None = 2e-4, io_bytes: float = 0.0) -> OperatorMeasurement:
    return OperatorMeasurement({n: rate * n for n in HOW.parallelisms}, cpu_s, io_bytes, 0.0)


def wordcount_profile():
    """Slots do 1080 lines, 396 lines and 1800 words; the splitter reaches nine tenths of its rate, as the source."""
    job = pipelines.create("wordcount").spark()
    sample = {
        "lines": dataset(1000),
        "source": dataset(1000, 40_000),
        "splitter": dataset(5000, 60_000),
        "counter": dataset(2500, 50_000),
    }
    measured = {"source": seen(972.0), "splitter": seen(356.4), "counter": None}
    return _profile("wordcount", job, sample, measured, HOW)


def test_rates_follow_the_selectivities_from_the_sources_on():
    profile = wordcount_profile()
    assert profile.source_rates == {"source": pytest.approx(2000.0)}
    costs = {operator.name: operator.costs for operator in profile.operators}
    assert [costs[name].selectivity for name in ("source", "splitter", "counter")] == [1.0, 5.0, 0.5]
    assert costs["splitter"].net_bytes_per_record == 60.0


def test_parallelism_is_the_least_that_carries_load_1_and_loads_are_per_task():
    splitter = next(found for found in wordcount_profile().operators if found.name == "splitter")
    assert splitter.parallelism == 6  # 2000 lines/s at 356 each
    assert splitter.cpu == pytest.approx(2000 / 6 * 2e-4)
    assert splitter.net == pytest.approx(2000 / 6 * 60)


def test_what_could_not_be_measured_is_estimated_and_says_so():
    counter = next(found for found in wordcount_profile().operators if found.name == "counter")
    assert counter.costs.estimated
    spec = pipelines.create("wordcount").spark().pipeline.operators["counter"]
    shares = [rate / (n * spec.slot_rate_at(n)) for n, rate in counter.costs.capacity.items()]
    # the mean of what the measured operators reach of their nominal rates
    assert shares == pytest.approx([shares[0]] * len(shares))
    assert 0.9 < shares[0] < 1.05
    assert counter.costs.cpu_s_per_record is None


def test_a_profile_is_read_back_as_it_was_written(tmp_path):
    from sluice.placement.request import read_profile

    path = tmp_path / "profile.json"
    path.write_text(wordcount_profile().model_dump_json())
    assert read_profile(path) == wordcount_profile()


@pytest.mark.parametrize(
    ("settings", "quoted"), [({"parallelisms": (0, 2)}, "0"), ({"measure_s": 0.0}, "measure_s must be above 0")]
)
def test_impossible_measurements_are_refused(settings, quoted):
    with pytest.raises(BadInputError, match=quoted):
        MeasurementPlan(**settings)


def test_cpu_time_counts_the_whole_family(tmp_path):
    stat = "{pid} (a) b) S {parent} 0 0 0 0 0 0 0 0 0 {user} {system} {gone} 0 0"
    family = {10: (1, 300), 11: (10, 200), 12: (11, 100), 20: (1, 9999)}
    for pid, (parent, user) in family.items():
        (tmp_path / str(pid)).mkdir()
        text = stat.format(pid=pid, parent=parent, user=user, system=0, gone=0)
        (tmp_path / str(pid) / "stat").write_text(text)
    import os

    assert cpu_seconds(10, tmp_path) == pytest.approx(600 / os.sysconf("SC_CLK_TCK"))


def test_where_the_system_tells_nothing_cpu_time_is_unknown(tmp_path):
    assert cpu_seconds(10, tmp_path) is None
