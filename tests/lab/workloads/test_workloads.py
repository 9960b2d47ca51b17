"""Patterns: their lengths, their shapes, and what a trace must look like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.cli import main
from sluice.errors import BadInputError
from sluice.lab.workloads import duration_s, rate_curve, workloads

PATTERNS = [name for name in workloads.names() if name != "trace"]
LENGTHS = {"cosine": 140, "random": 140, "increasing": 140, "decreasing": 140, "convergence": 90, "permutation": 200}


def loads(name, seed=0, **settings):
    return workloads.create(name, settings).loads(np.random.default_rng(seed))


@given(seed=st.integers(0, 10_000))
@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_is_finite_not_negative_and_depends_on_its_seed_alone(name, seed):
    values = loads(name, seed)
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert (values == loads(name, seed)).all()


@pytest.mark.parametrize(("name", "minutes"), LENGTHS.items())
def test_lengths_are_those_of_the_papers(name, minutes):
    assert duration_s(workloads.create(name)) == minutes * 60


def test_cosine_starts_at_its_peak_and_comes_back_after_a_period():
    values = loads("cosine", noise="0")
    assert values[[0, 30, 60]] == pytest.approx([1, 200 / 2200, 1])


def test_random_walk_keeps_to_its_step_and_its_bounds():
    values = loads("random", 3)
    assert np.abs(np.diff(values)).max() <= 500 / 2200 + 1e-12
    assert values.max() <= 2500 / 2200


def test_ramps_go_one_way_from_end_to_end():
    up, down = loads("increasing", 1), loads("decreasing", 1)
    assert (np.diff(up) >= 0).all()
    assert (np.diff(down) <= 0).all()
    assert (up[0], down[-1]) == (0, 0)
    assert (up[-1], down[0]) == (pytest.approx(2500 / 2200), pytest.approx(2500 / 2200))


def test_convergence_has_three_steps():
    values = loads("convergence")
    assert [values[5], values[20], values[70]] == pytest.approx([0, 2000 / 2200, 1000 / 2200])


def test_permutation_runs_every_level_twice():
    values = loads("permutation", 5, level_minutes=1)
    assert sorted(values[:10]) == pytest.approx([level / 10 for level in range(1, 11)])
    assert (values[:10] == values[10:]).all()
    assert (values != loads("permutation", 6, level_minutes=1)).any()


def test_square_alternates():
    assert loads("square", phase_minutes=2, phases=3, low=0.25).tolist() == [1, 1, 0.25, 0.25, 1, 1]


def test_spikes_rise_from_the_base():
    assert set(loads("spikes", 2)) == {0.3, 1.0}


def test_a_rate_holds_for_its_minute_and_the_last_one_for_ever():
    curve = rate_curve(workloads.create("square", {"phase_minutes": 1, "phases": 2}), peak_rate=100, seed=0)
    assert curve(np.array([0, 59.9, 60, 119.9, 9999])).tolist() == [100, 100, 50, 50, 50]


def test_speedup_lets_the_pattern_run_faster():
    workload = workloads.create("square", {"phase_minutes": 1, "phases": 2})
    assert rate_curve(workload, peak_rate=100, seed=0, speedup=60)(np.array([0.5, 1.5])).tolist() == [100, 50]


def trace(tmp_path, text, **settings):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return workloads.create("trace", {"path": str(path), **settings})


def test_a_trace_is_in_records_per_second(tmp_path):
    workload = trace(tmp_path, "minute,rate\n5,10\n6,20\n")
    assert rate_curve(workload, peak_rate=1e6, seed=0)(np.array([0.0, 60.0])).tolist() == [10, 20]


def test_a_trace_can_be_scaled_to_a_peak(tmp_path):
    workload = trace(tmp_path, "minute,rate\n0,10\n1,20\n", peak="1")
    assert rate_curve(workload, peak_rate=1000, seed=0)(np.array([0.0, 60.0])).tolist() == [500, 1000]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("minute,rate\n0,10\n2,20\n", "line 3: expected minute 1, got 2; every minute needs a row"),
        ("minute,rate\n0,10\n1,\n", "line 3: expected 'minute,rate', got '1,'"),
        ("minute,rate\n0,-1\n", "line 2: the rate must not be negative, got '-1'"),
        ("minute,rate\n0,nan\n", "line 2: the rate must not be negative, got 'nan'"),
        ("rate\n1\n", "the first line must be 'minute,rate'"),
        ("minute,rate\n", "has no rows"),
        ("", "the first line must be"),
    ],
)
def test_a_trace_with_a_hole_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(BadInputError, match=message):
        trace(tmp_path, text)


def test_a_trace_needs_a_file(tmp_path):
    with pytest.raises(BadInputError, match="cannot read trace"):
        workloads.create("trace", {"path": str(tmp_path / "none.csv")})
    with pytest.raises(BadInputError, match="needs path=FILE"):
        workloads.create("trace")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("constant", {"load": "2200000"}, "load is a share of the pipeline's peak rate and must be between 0 and 10"),
        ("constant", {"minutes": "1000000000000"}, "minutes must be between 1 and 1,000,000, got 1,000,000,000,000"),
        ("increasing", {"minutes": "1"}, "minutes must be between 2 and"),
        ("decreasing", {"peak": "0"}, "peak must be above 0, got 0"),
        ("square", {"low": "-1"}, "low is a share .* got -1"),
    ],
)
def test_values_out_of_range_are_quoted(name, settings, message):
    with pytest.raises(BadInputError, match=message):
        workloads.create(name, settings)


BENCH = ["bench", "--policy", "ds2", "--seeds", "1", "--out", "bench", "--workload"]


@pytest.mark.parametrize(
    "command",
    [
        [*BENCH, "trace:path=trace.csv,peak=100000", "--pipeline", "q1"],
        ["run", "q1", "--workload", "trace", "--workload-set", "path=trace.csv", "--workload-set", "peak=100000"],
    ],
)
def test_a_rate_where_a_share_is_expected_is_one_line(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text("minute,rate\n0,1000\n1,2000\n")
    with pytest.raises(SystemExit) as exited:
        main(command)
    assert exited.value.code == 2
    printed = capsys.readouterr().err
    assert "peak is a share of the pipeline's peak rate and must be between 0 and 10, got 100000" in printed
    assert printed.count("\n") == 1


def test_a_bench_beyond_the_planners_memory_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text("minute,rate\n0,1e13\n1,2e13\n")
    with pytest.raises(SystemExit) as exited:
        main([*BENCH, "trace:path=trace.csv", "--pipeline", "q11", "--processes", "1"])
    assert exited.value.code == 1
    printed = capsys.readouterr().err
    assert "the clairvoyant planner cannot plan 2 load steps with waits of up to" in printed
    assert "Traceback" not in printed
