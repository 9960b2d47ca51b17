"""What tables on Spark are read from; the runs themselves are a bench on Spark."""

import pytest

from sluice.cli import main
from sluice.lab.bench.cell import run_cell
from sluice.lab.reproduce import on_spark
from sluice.lab.reproduce.on_spark import TABLES, SparkRuns, _changes, _settled, run_on_spark, spark_tables
from sluice.lab.series import ActionMark, Series


def series(slots, actions):
    count = len(slots)
    return Series(
        time_s=tuple(10.0 * (i + 1) for i in range(count)),
        arrival_rate=(1.0,) * count,
        throughput=(1.0,) * count,
        slots={"map": tuple(slots)},
        latency_s=(None,) * count,
        actions=tuple(ActionMark(time_s=time_s, changes="", reason="") for time_s in actions),
    )


def test_actions_are_told_apart_by_the_slots_after_them():
    assert _changes(series([1, 1, 4, 4, 2, 2], [20.0, 40.0])) == (2, 1, 1)


@pytest.mark.parametrize(("actions", "settled_s"), [([20.0], 20.0), ([], 0.0), ([95.0], None), ([20.0, 130.0], 20.0)])
def test_a_stage_has_settled_if_its_last_quarter_is_left_alone(actions, settled_s):
    assert _settled(series([1] * 20, actions), 0.0, 0.5, 200.0) == settled_s


def test_the_tables_that_run_on_spark():
    assert {paper: spark_tables(paper) for paper in TABLES} == {
        "conttune": ("4a", "7"),
        "dragster": ("2",),
        "kanis": ("7.9", "7.10", "7.19"),
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kanis", "--engine", "spark"], "needs --out"),
        (["capsys", "--engine", "spark", "--out", "x"], "no table of capsys runs on Spark"),
        (["kanis", "--engine", "flink"], "unknown engine 'flink'"),
        (["kanis", "--out", "x"], "--out is for --engine spark"),
        (["kanis", "--processes", "2"], "--processes is for --engine spark"),
        (["kanis", "--engine", "spark", "--out", "x", "--table", "7.1"], "unknown table"),
        (["kanis", "--engine", "spark", "--out", "x", "--set", "seeds=2"], "--set is for the simulator"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(arguments, said, capsys):
    with pytest.raises(SystemExit) as end:
        main(["reproduce", *arguments])
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_all_policies_of_a_table_go_side_by_side_and_its_note_says_how_many(tmp_path, monkeypatch):
    asked = []

    def stand_in(benches, **how):
        asked.append(([folder.name for folder in benches], how["processes"]))
        cells = [cell.model_copy(update={"engine": "sim"}) for cells in benches.values() for cell in cells]
        ran = {cell.key: run_cell(cell, with_series=True, against_planner=False) for cell in cells}
        noted = [ran[cell.key].model_copy(update={"side_by_side": 6}) for cell in cells]
        seeds = len(noted) // len(benches)
        return {folder: noted[at * seeds : (at + 1) * seeds] for at, folder in enumerate(benches)}

    monkeypatch.setattr(on_spark, "run_benches", stand_in)
    how = SparkRuns(out=tmp_path, seeds=2, duration_s=300.0, processes=6)
    table = run_on_spark("dragster", "2", how, lambda _: None)
    ((folders, processes),) = asked
    assert len(folders) == 3
    assert processes == 6
    assert "2 seeds of 300 s, 6 runs at a time" in table.notes[0]
