from __future__ import annotations

import pytest

from sluice.errors import BadInputError
from sluice.lab.reproduce import reproductions

pytest.importorskip("sklearn")


def test_knows_the_papers_tables():
    assert reproductions.create("qescalor").tables() == ("table2", "table3", "figure2", "figure3", "figure4")


@pytest.mark.slow
def test_table_3_names_the_best_model_honestly():
    lines: list[str] = []
    table = reproductions.create("qescalor", {"repeats": 1}).run("table3", lines.append)
    best = next(row for row in table.rows if row.what == "best model")
    assert str(best.ours).startswith("forest")
    assert len(lines) == 4


@pytest.mark.parametrize("name", ["repeats", "days"])
def test_needs_at_least_one_run(name):
    with pytest.raises(BadInputError, match="got 0"):
        reproductions.create("qescalor", {name: 0})


@pytest.mark.slow
def test_figures_2_and_3_show_the_same_day_with_the_papers_sizes(tmp_path):
    found = reproductions.create("qescalor", {"days": 1, "pictures": str(tmp_path)})
    costs, service = found.run("figure2", lambda _: None), found.run("figure3", lambda _: None)
    dearer = [row for row in costs.rows if "dearer" in row.what]
    assert [row.what.partition(":")[0] for row in dearer] == ["CBA r1", "CBA r2", "CBA r3", "CBA r4"]
    assert {row.verdict for row in dearer} <= {"claim holds", "differs"}
    assert len([row for row in service.rows if "latency stays stable" in row.what]) == 5
    assert costs.notes == service.notes
    assert {path.name for path in tmp_path.iterdir()} == {"qescalor-figure2.html", "qescalor-figure3.html"}


def test_the_steps_of_the_sampler_are_told_by_slope(tmp_path):
    table = reproductions.create("qescalor", {"pictures": str(tmp_path)}).run("figure4", lambda _: None)
    assert {row.verdict for row in table.rows if "steps" in row.what} == {"claim holds"}
    assert (tmp_path / "qescalor-figure4.html").exists()
