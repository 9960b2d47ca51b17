"""A bench as a Spark job: other machines, the same numbers."""

import pytest

from sluice.journal.records import Choice
from sluice.lab.bench.bench import run_bench
from sluice.lab.bench.grid import grid
from sluice.lab.bench.on_spark import score_groups_on_spark
from sluice.lab.bench.statistics import score_groups

pytestmark = pytest.mark.spark


def test_the_same_grid_through_spark_gives_identical_numbers(spark, tmp_path):
    cells = grid(
        [Choice(name="q1"), Choice(name="q11")],
        [Choice(name="cosine")],
        [Choice(name="ds2"), Choice(name="clairvoyant")],
        range(2),
        duration_s=1800.0,
    )
    here = run_bench(cells, tmp_path / "here", processes=1)
    there = run_bench(cells, tmp_path / "there", on="local[2]")
    assert there == here
    assert score_groups_on_spark(there, "local[2]") == score_groups([result.row for result in here])


def test_a_bench_begun_here_is_finished_on_spark(spark, tmp_path):
    cells = grid([Choice(name="q1")], [Choice(name="cosine")], [Choice(name="static")], range(3), duration_s=600.0)
    whole = run_bench(cells, tmp_path, processes=1)
    (tmp_path / "cells" / f"{cells[1].key}.json").unlink()
    assert run_bench(cells, tmp_path, on="local[2]") == whole
