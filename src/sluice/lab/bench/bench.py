"""A whole bench: run what is not there yet, wherever asked, and put the table beside the cells."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path

from sluice.lab.bench.cell import Result, shared_session
from sluice.lab.bench.grid import Cell
from sluice.lab.bench.local import Task, run_here
from sluice.lab.bench.store import BenchStore

OnProgress = Callable[[int, int], None]
"""Called with the cells done and the cells there are."""


def run_bench(
    cells: Sequence[Cell],
    folder: Path,
    *,
    on: str | None = None,
    processes: int | None = None,
    series_for_all: bool = False,
    within_s: float = math.inf,
    on_progress: OnProgress = lambda _done, _total: None,
) -> list[Result]:
    """Results in the order of the grid. `on` is a Spark master; without it the cells run in processes here.

    Time series are kept for the first seed of every group unless asked for all: pictures show one run. After `within_s`
    no result is waited for any more: a long bench can be run in pieces. Runs of pipelines on Spark share a session.
    """
    deadline_s = time.monotonic() + within_s
    store = BenchStore(folder)
    to_do = store.begin(cells)
    first_seed = cells[0].seed
    tasks = [(cell, series_for_all or cell.seed == first_seed) for cell in to_do]
    done = len(cells) - len(to_do)
    on_progress(done, len(cells))
    with shared_session(to_do), closing(_run(tasks, store, on, processes)) as finished:
        for _ in finished:
            done += 1
            on_progress(done, len(cells))
            if time.monotonic() > deadline_s:
                break
    results = store.results()
    store.write_table(results)
    return results


def run_cells(cells: Sequence[Cell], *, processes: int | None = None, on: str | None = None) -> list[Result]:
    """The same without a folder: nothing is kept, results come in the order of the cells."""
    found = {result.cell.key: result for result in _run([(cell, False) for cell in cells], None, on, processes)}
    return [found[cell.key] for cell in cells]


def _run(tasks: Sequence[Task], store: BenchStore | None, on: str | None, processes: int | None) -> Generator[Result]:
    if not tasks:
        return
    if on is None:
        yield from run_here(tasks, processes or os.cpu_count() or 1, store.save if store else None)
        return
    from sluice.lab.bench.on_spark import run_on_spark

    for result in run_on_spark(tasks, on):
        if store:
            store.save(result)
        yield result
