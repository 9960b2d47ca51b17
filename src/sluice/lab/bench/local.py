"""Run cells on this machine, in as many processes; of those on Spark each process has a session of its own."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import parent_process

from sluice.lab.bench.cell import Result, keep_session, run_cell, threads_to_share
from sluice.lab.bench.grid import Cell

Task = tuple[Cell, bool]
"""A cell, and whether to keep its time series."""

Keep = Callable[[Result], None]
"""Called where the cell ran, as soon as it is finished; must survive being sent to another process."""


MayBegin = Callable[[], bool]
"""Whether another cell may be begun; asked after each one."""


def run_here(
    tasks: Sequence[Task], processes: int, keep: Keep | None = None, may_begin: MayBegin = lambda: True
) -> Iterator[Result]:
    """Results in the order they are finished. Cells of a case go to one process: they share the clairvoyant plan.

    What is running when no other may begin is waited for.
    """
    processes = min(processes, len(tasks))
    if processes == 1:
        for task in tasks:
            yield from run_bundle([task], keep)
            if not may_begin():
                return
        return
    threads = threads_to_share([cell for cell, _ in tasks])
    # a forked child would inherit locks of numba's and BLAS' threads in whatever state they are
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, prepare_worker) as pool:
        waiting = bundle(tasks, processes)
        running = {
            pool.submit(run_bundle, found, keep, processes, threads) for found in itertools.islice(waiting, processes)
        }
        try:
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for found in itertools.islice(waiting, len(finished) if may_begin() else 0):
                    running.add(pool.submit(run_bundle, found, keep, processes, threads))
                for future in finished:
                    yield from future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def bundle(tasks: Sequence[Task], processes: int) -> Iterator[list[Task]]:
    """Case by case, unless that would leave processes idle; on Spark nothing is planned that could be shared."""
    cases = [list(group) for _, group in itertools.groupby(tasks, key=lambda task: task[0].case_key)]
    if len(cases) >= 2 * processes and not any(cell.engine == "spark" for cell, _ in tasks):
        yield from cases
    else:
        yield from ([task] for task in tasks)


def run_bundle(
    tasks: Sequence[Task], keep: Keep | None, side_by_side: int = 1, threads: int | None = None
) -> list[Result]:
    """With `threads` in a Spark session of this process, opened for the first and kept for the others."""
    if threads is not None:
        keep_session(threads)
    results = []
    for cell, with_series in tasks:
        results.append(run_cell(cell, with_series=with_series, side_by_side=side_by_side))
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
