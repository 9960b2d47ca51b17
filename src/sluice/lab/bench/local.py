"""Run cells on all cores of this machine, one process per core."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import parent_process

from sluice.lab.bench.cell import Result, run_cell
from sluice.lab.bench.grid import Cell

Task = tuple[Cell, bool]
"""A cell, and whether to keep its time series."""

Keep = Callable[[Result], None]
"""Called where the cell ran, as soon as it is finished; must survive being sent to another process."""


def run_here(tasks: Sequence[Task], processes: int, keep: Keep | None = None) -> Iterator[Result]:
    """Results in the order they are finished. Cells of a case go to one process: they share the clairvoyant plan."""
    if processes == 1 or len(tasks) == 1:
        for task in tasks:
            yield from run_bundle([task], keep)
        return
    # a forked child would inherit locks of numba's and BLAS' threads in whatever state they are
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, prepare_worker) as pool:
        futures = [pool.submit(run_bundle, found, keep) for found in bundle(tasks, processes)]
        try:
            for future in as_completed(futures):
                yield from future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def bundle(tasks: Sequence[Task], processes: int) -> Iterator[list[Task]]:
    """Case by case, unless that would leave processes idle."""
    cases = [list(group) for _, group in itertools.groupby(tasks, key=lambda task: task[0].case_key)]
    if len(cases) >= 2 * processes:
        yield from cases
    else:
        yield from ([task] for task in tasks)


def run_bundle(tasks: Sequence[Task], keep: Keep | None) -> list[Result]:
    results = []
    for cell, with_series in tasks:
        results.append(run_cell(cell, with_series=with_series))
        if keep:
            keep(results[-1])
    return results


def prepare_worker() -> None:
    """One thread per process, and no orphans: a worker whose parent was killed ends, too."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    if parent := parent_process():

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
