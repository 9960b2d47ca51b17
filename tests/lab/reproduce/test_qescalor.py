from __future__ import annotations

import pytest

from sluice.errors import BadInputError
from sluice.lab.reproduce import reproductions

pytest.importorskip("sklearn")


def test_knows_the_papers_tables():
    assert reproductions.create("qescalor").tables() == ("table2", "table3", "figure2", "figure3")


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
def test_figures_2_and_3_show_the_same_day(tmp_path):
    found = reproductions.create("qescalor", {"days": 1, "pictures": str(tmp_path)})
    costs, service = found.run("figure2", lambda _: None), found.run("figure3", lambda _: None)
    dearer = [row for row in costs.rows if "dearer" in row.what]
    assert len(dearer) == 6
    assert {row.verdict for row in dearer} == {"claim holds"}
    assert service.rows[-1].verdict == "claim holds"
    assert costs.notes == service.notes
    assert {path.name for path in tmp_path.iterdir()} == {"qescalor-figure2.html", "qescalor-figure3.html"}
