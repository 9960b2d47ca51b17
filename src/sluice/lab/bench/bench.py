"""A whole bench: run what is not there yet, wherever asked, and put the table beside the cells."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TypedDict

from typing_extensions import Unpack

from sluice.lab.bench.cell import Result, check_side_by_side, shared_session
from sluice.lab.bench.grid import Cell
from sluice.lab.bench.local import Keep, MayBegin, Task, run_here
from sluice.lab.bench.store import BenchStore, KeepInFolders

OnProgress = Callable[[int, int], None]
"""Called with the cells done and the cells there are."""


class How(TypedDict, total=False):
    """The options of `run_benches`."""

    on: str | None
    processes: int | None
    series_for_all: bool
    within_s: float
    on_progress: OnProgress


def run_bench(cells: Sequence[Cell], folder: Path, **how: Unpack[How]) -> list[Result]:
    """Results in the order of the grid."""
    return run_benches({folder: cells}, **how)[folder]


def run_benches(
    benches: Mapping[Path, Sequence[Cell]],
    *,
    on: str | None = None,
    processes: int | None = None,
    series_for_all: bool = False,
    within_s: float = math.inf,
    on_progress: OnProgress = lambda _done, _total: None,
) -> dict[Path, list[Result]]:
    """Several at once, each in a folder of its own, so that runs of all of them go side by side.

    `on` is a Spark master; without it the cells run in processes here, by default one per core, pipelines on Spark one
    after the other in a session they share. Time series are kept for the first seed of every group unless asked for
    all: pictures show one run. After `within_s` no run is begun any more: a long bench can be run in pieces.
    """
    deadline_s = time.monotonic() + within_s
    every = [cell for cells in benches.values() for cell in cells]
    if processes is None:
        processes = 1 if any(cell.engine == "spark" for cell in every) else os.cpu_count() or 1
    check_side_by_side(every, processes)
    stores = {folder: BenchStore(folder) for folder in benches}
    tasks: list[Task] = []
    folders: dict[str, BenchStore] = {}
    for folder, cells in benches.items():
        to_do = stores[folder].begin(cells)
        tasks += [(cell, series_for_all or cell.seed == cells[0].seed) for cell in to_do]
        folders |= {cell.key: stores[folder] for cell in to_do}
    done = len(every) - len(tasks)
    on_progress(done, len(every))
    ours = shared_session([cell for cell, _ in tasks]) if min(processes, len(tasks)) == 1 else nullcontext()
    with (
        ours,
        closing(_run(tasks, KeepInFolders(folders), on, processes, lambda: time.monotonic() <= deadline_s)) as finished,
    ):
        for _ in finished:
            done += 1
            on_progress(done, len(every))
    found = {folder: store.results() for folder, store in stores.items()}
    for folder, store in stores.items():
        store.write_table(found[folder])
    return found


def _run(
    tasks: Sequence[Task],
    keep: Keep,
    on: str | None,
    processes: int,
    may_begin: MayBegin,
) -> Generator[Result]:
    if not tasks:
        return
    if on is None:
        yield from run_here(tasks, processes, keep, may_begin)
        return
    from sluice.lab.bench.on_spark import run_on_spark

    for result in run_on_spark(tasks, on):
        keep(result)
        yield result
        if not may_begin():
            return
