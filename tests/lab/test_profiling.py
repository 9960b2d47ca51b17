"""What a profile says, from measurements made up for the purpose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sluice.errors import BadInputError
from sluice.lab.datasets import StoredDataset
from sluice.lab.pipelines import pipelines
from sluice.lab.profiling import MeasurementPlan, OperatorMeasurement, _accumulate, _profile, _with_backlog
from sluice.lab.profiling_place import OnWorkers
from sluice.model import Observation, OperatorMetrics, WorkerMetrics
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


class Backlogged:
    """An engine whose windows are given; time passes at once."""

    tick_s = None

    def __init__(self, *windows: Observation) -> None:
        self._windows = iter(windows)
        self.clock = self

    def now_s(self) -> float:
        self._s = getattr(self, "_s", 0.0) + 100.0
        return self._s

    def sleep_s(self, _duration_s: float) -> None: ...

    def maintain(self) -> tuple[str, ...]:
        return ()

    def observe(self) -> Observation:
        return next(self._windows)


def on_worker(lag: float, cpu: float | None, state_bytes: float = 0.0) -> Observation:
    busy = WorkerMetrics(slots=2, source_tasks={"a": 5}, cpu=cpu, task_cpu=0.1)
    idle = WorkerMetrics(slots=2, cpu=9.0)
    operator = OperatorMetrics(parallelism=1, input_rate=100.0, lag=lag, io_rate=50.0, state_bytes=state_bytes)
    return Observation(time_s=1, interval_s=1, operators={"a": operator}, workers={"w0": idle, "w1": busy})


def test_only_windows_with_a_backlog_count_and_cpu_is_that_of_the_operators_worker():
    spec = next(iter(pipelines.create("q1").spark().pipeline.operators.values()))
    spec = replace(spec, name="a")
    engine = Backlogged(on_worker(500, 0.4), on_worker(100, 0.6), on_worker(0, 0.1))
    spent = _with_backlog(engine, spec, HOW, OnWorkers(None, "spark://h:1"))
    assert spent.records == pytest.approx(100 * spent.elapsed_s)
    assert 0.4 * spent.elapsed_s < spent.cpu_s < 0.6 * spent.elapsed_s
    assert spent.io_bytes / spent.records == pytest.approx(0.5)


def test_a_worker_on_another_machine_tells_what_its_tasks_used():
    assert OnWorkers(None, "spark://h:1").cpu_s(on_worker(1, None), 10.0) == pytest.approx(1.0)


def test_state_accumulates_until_it_grows_no_more():
    spec = replace(next(iter(pipelines.create("q1").spark().pipeline.operators.values())), name="a")
    windows = [on_worker(9, 0.1, state_bytes) for state_bytes in (100, 200, 215, 900)]
    engine = Backlogged(*windows)
    _accumulate(engine, spec, HOW)
    assert engine.observe() is windows[3]
