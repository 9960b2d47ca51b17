"""A bench: what it runs, what it keeps, and that an end in the middle changes nothing."""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet
import pytest

from sluice.errors import BadInputError
from sluice.journal.records import Choice
from sluice.lab.bench.bench import run_bench, run_benches
from sluice.lab.bench.cell import check_side_by_side, keep_session, runs_at_a_time
from sluice.lab.bench.grid import Cell, grid
from sluice.lab.bench.local import bundle, run_bundle, run_here
from sluice.lab.bench.store import BenchStore


def cells_of(*policies, seeds=2, duration_s=900.0, workload="cosine"):
    chosen = [Choice.parse_text(text) for text in policies]
    return grid([Choice(name="q1")], [Choice(name=workload)], chosen, range(seeds), duration_s=duration_s)


def test_a_choice_reads_as_it_is_written():
    assert Choice.parse_text("ds2:over_provisioning=1.4,warm_up=2").label == "ds2:over_provisioning=1.4,warm_up=2"
    assert Choice.parse_text("ds2").settings == {}


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        (["nope"], "unknown policy 'nope'"),
        (["ds2:nope=1"], "no parameter 'nope'"),
        (["ds2:over_provisioning"], "expected NAME or NAME:key=value"),
        (["ds2", "ds2"], "the same run twice"),
        ([], "at least one"),
    ],
)
def test_a_grid_is_refused_before_anything_runs(policies, said):
    with pytest.raises(BadInputError, match=said):
        cells_of(*policies)


def test_keys_tell_any_two_cells_apart_and_cases_forget_the_policy():
    one, two = cells_of("ds2", "static", seeds=1)
    assert one.key != two.key
    assert one.case_key == two.case_key
    assert one.model_copy(update={"slo_s": 31.0}).case_key != one.case_key
    assert Cell.model_validate_json(one.to_json()) == one


def test_cells_of_a_case_stay_together_if_there_are_enough_cases():
    tasks = [(cell, False) for cell in cells_of("ds2", "static", seeds=4)]
    assert [len(found) for found in bundle(tasks, processes=2)] == [2, 2, 2, 2]
    assert [len(found) for found in bundle(tasks, processes=4)] == [1] * 8


def test_the_folder_has_every_cell_a_table_and_the_first_seeds_time_lines(tmp_path):
    cells = cells_of("ds2", "static", "clairvoyant")
    seen = []
    results = run_bench(cells, tmp_path, processes=1, on_progress=lambda done, total: seen.append((done, total)))
    assert [result.cell for result in results] == cells
    assert seen == [(done, 6) for done in range(7)]
    assert [result.series is not None for result in results] == [True] * 3 + [False] * 3
    table = pyarrow.parquet.read_table(tmp_path / "results.parquet").to_pylist()
    assert table == [result.row for result in results]
    foreseen = results[2].row
    assert foreseen["cost_ratio"] == pytest.approx(1.0)
    assert foreseen["slo_violation_ratio"] <= 0.06


def test_what_is_there_is_not_run_again(tmp_path, monkeypatch):
    cells = cells_of("ds2", "static")
    run_bench(cells, tmp_path, processes=1)
    (tmp_path / "cells" / f"{cells[1].key}.json").unlink()
    ran = []
    monkeypatch.setattr(BenchStore, "save", lambda _, result: ran.append(result.cell))
    run_bench(cells, tmp_path, processes=1)
    assert ran == [cells[1]]


def test_another_grid_in_the_same_folder_is_refused(tmp_path):
    run_bench(cells_of("static", seeds=1), tmp_path, processes=1)
    with pytest.raises(BadInputError, match="holds another bench"):
        run_bench(cells_of("static", seeds=2), tmp_path, processes=1)


@pytest.mark.slow
def test_killed_and_resumed_equals_uninterrupted(tmp_path):
    cells = cells_of("ds2", "static", seeds=8, duration_s=None)
    arguments = ["--pipeline", "q1", "--workload", "cosine", "--policy", "ds2", "--policy", "static", "--seeds", "8"]
    command = [sys.executable, "-c", "from sluice.cli import main; main()", "bench", *arguments, "--processes", "2"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    bench = subprocess.Popen([*command, "--out", str(killed)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not list(killed.glob("cells/*.json")) and bench.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    children = _children(bench.pid)
    os.kill(bench.pid, signal.SIGKILL)
    bench.wait()
    assert 1 <= len(list(killed.glob("cells/*.json"))) < 16
    while any(_alive(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(child) for child in children)
    resumed = []
    assert run_bench(cells, killed, processes=1, on_progress=lambda done, _: resumed.append(done)) == run_bench(
        cells, whole, processes=1
    )
    assert resumed[0] >= 1
    one, two = (pyarrow.parquet.read_table(BenchStore(folder).results_path) for folder in (killed, whole))
    assert one.num_rows == 16
    assert one.equals(two)


def test_on_spark_the_pattern_fits_the_run_and_nobody_plans(tmp_path, monkeypatch):
    from sluice.lab import spark_run as spark
    from sluice.lab.run import simulated_engine

    seen = []

    def stand_in(spec, settings, root):
        seen.append((spec.speedup, settings.slots))
        return simulated_engine(spec)

    monkeypatch.setattr(spark, "spark_engine", stand_in)
    choices = [Choice(name="q1")], [Choice(name="cosine")], [Choice(name="ds2")]
    cells = grid(*choices, range(1), engine="spark", duration_s=300.0, guards={"max_slots": 24})
    (result,) = run_bench(cells, tmp_path, processes=1)
    assert seen == [(8400 / 300, 24)]
    assert result.row["engine"] == "spark"
    assert result.row["cost_ratio"] is None
    assert result.row["side_by_side"] == 1
    with pytest.raises(BadInputError, match="clairvoyant plans for the simulator only"):
        grid(*choices[:2], [Choice(name="clairvoyant")], range(1), engine="spark")


def _children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_command_prints_groups_and_comparisons(tmp_path, capsys):
    from sluice.cli import main

    arguments = ["bench", "--pipeline", "q1", "--workload", "cosine", "--policy", "ds2", "--policy", "static"]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--seeds", "2", "--duration", "600", "--processes", "1", "--out", str(tmp_path), "--json"])
    assert stopped.value.code == 0
    content = json.loads(capsys.readouterr().out)
    assert [group["policy"] for group in content["groups"]] == ["ds2", "static"]
    assert {found["metric"] for found in content["comparisons"]} >= {"avg_slots", "cost_ratio"}


def test_a_bench_in_pieces_goes_on_until_all_is_there(tmp_path):
    cells = cells_of("ds2", "static")
    assert len(run_bench(cells, tmp_path, processes=1, within_s=0.0)) == 1
    assert len(run_bench(cells, tmp_path, processes=1, within_s=0.0)) == 2
    assert [result.cell for result in run_bench(cells, tmp_path, processes=1)] == cells


def spark_cells(pipeline="q1", seeds=2, **spark):
    choices = [Choice.parse_text(pipeline)], [Choice(name="cosine")], [Choice(name="ds2"), Choice(name="static")]
    return grid(*choices, range(seeds), engine="spark", duration_s=60.0, guards={"max_slots": 8}, spark=spark)


def test_several_benches_run_together_and_each_keeps_its_own_folder(tmp_path):
    benches = {tmp_path / name: cells_of(name, seeds=2) for name in ("ds2", "static")}
    seen = []
    found = run_benches(benches, processes=2, on_progress=lambda done, total: seen.append((done, total)))
    assert {folder: [result.cell for result in results] for folder, results in found.items()} == benches
    assert seen == [(done, 4) for done in range(5)]
    assert all(len(list(folder.glob("cells/*.json"))) == 2 for folder in benches)
    assert {result.row["side_by_side"] for results in found.values() for result in results} == {None}


def test_when_time_is_up_what_runs_is_waited_for_and_nothing_else_begins():
    tasks = [(cell, False) for cell in cells_of("ds2", "static", seeds=3)]
    assert len(list(run_here(tasks, 2, None, lambda: False))) == 2


def test_runs_on_spark_are_spread_one_by_one():
    tasks = [(cell, False) for cell in spark_cells(seeds=4)]
    assert [len(found) for found in bundle(tasks, processes=2)] == [1] * 8


@pytest.mark.parametrize(
    ("pipeline", "spark", "said"),
    [
        ("q1:paced=false", {}, "side by side need slots that sleep; those of q1:paced=false compute.* got 3"),
        ("q1", {"topics": "kafka://here:9092"}, "share the topics on kafka://here:9092"),
    ],
)
def test_runs_that_would_disturb_each_other_are_refused_before_any_begins(pipeline, spark, said, tmp_path):
    cells = spark_cells(pipeline, **spark)
    check_side_by_side(cells, 1)
    with pytest.raises(BadInputError, match=said):
        run_bench(cells, tmp_path, processes=3)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_opens_one_session_for_all_its_runs_and_notes_how_many_there_were(monkeypatch):
    from sluice.lab import spark_run
    from sluice.lab.run import simulated_engine
    from sluice.spark import session

    opened = []

    class Handle:
        def close(self):
            opened.append("closed")

    def opening(_name, *, threads):
        opened.append(threads)
        return Handle()

    monkeypatch.setattr(session, "open_session", opening)
    monkeypatch.setattr("atexit.register", lambda _: None)
    monkeypatch.setattr(spark_run, "spark_engine", lambda spec, *_: simulated_engine(spec))
    keep_session.cache_clear()
    results = [run_bundle([(cell, False)], None, 3, 12)[0] for cell in spark_cells(seeds=1)]
    keep_session.cache_clear()
    assert opened == [12]
    assert [result.side_by_side for result in results] == [3, 3]


def test_how_many_ran_at_a_time_in_words():
    assert runs_at_a_time([None, 1]) == "one run at a time"
    assert runs_at_a_time([6, 3, 6]) == "3 or 6 runs at a time"
