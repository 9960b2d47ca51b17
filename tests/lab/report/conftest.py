"""Folders as the commands leave them, made once."""

import pytest

from sluice.journal.records import Choice
from sluice.lab.bench.bench import run_bench
from sluice.lab.bench.grid import grid


@pytest.fixture(scope="session")
def bench_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports") / "small"
    cells = grid(
        [Choice(name="q1")],
        [Choice(name="cosine"), Choice(name="convergence")],
        [Choice(name=name) for name in ("ds2", "hpa-cpu", "clairvoyant")],
        range(2),
        duration_s=3000.0,
    )
    run_bench(cells, folder, processes=1)
    return folder


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    from sluice.cli import main

    folder = tmp_path_factory.mktemp("reports") / "one"
    with pytest.raises(SystemExit):
        main(["run", "q1", "--policy", "ds2", "--duration", "1200", "--seed", "1", "--out", str(folder), "--json"])
    return folder
