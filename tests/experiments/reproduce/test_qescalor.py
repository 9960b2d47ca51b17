from __future__ import annotations

import pytest

from sluice.errors import BadInputError
from sluice.experiments.reproduce import reproductions

pytest.importorskip("sklearn")


def test_knows_the_papers_tables():
    assert reproductions.create("qescalor").tables() == ("table2", "table3", "figure2")


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
