"""Runs of paced pipelines on Spark, measured in pieces and several at a time: what such benchmarks share.

Every finished run is kept in a file of `Results`, and no run is begun after so many seconds: the same command goes on.
All runs of a process share a Spark session. Paced slots sleep most of the time, so several runs fit on a machine, each
in a process with a JVM of its own: a row says how many there were (`side_by_side`) and how busy that made the machine
(`machine_busy`). Those JVMs compile with the first compiler alone: the optimising one takes a third of a short run's
CPU and never earns it back, and slots that sleep gain nothing from faster code.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.measuring import Results, end_on_sigterm, machine_cpu_s, run_side_by_side
from sluice.lab.bench.cell import Result, run_cell, shared_session, warm_up
from sluice.lab.bench.grid import Cell
from sluice.lab.bench.statistics import Estimate
from sluice.lab.environment import environment

MACHINE = ("date", "processor", "cores", "sluice")
QUICK_START = "-XX:TieredStopAtLevel=1"
Row = Mapping[str, Any]
Describe = Callable[[Cell, Result], Row]


def measuring_options(parser: argparse.ArgumentParser, *, within_s: float = 420.0) -> None:
    parser.add_argument("--within", type=float, default=within_s, help="seconds after which no run is begun")
    parser.add_argument("--show", action="store_true", help="run nothing: what there is so far")
    parser.add_argument("--side-by-side", type=int, default=1, help="so many runs at a time")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)


def measure_missing(
    module: str, planned: Sequence[Cell], results: Results, options: argparse.Namespace, describe: Describe
) -> bool:
    """Runs what is missing, here or in processes of the same command; whether there is anything left to tell."""
    end_on_sigterm()
    missing = [cell for cell in planned if cell.key not in results]
    side_by_side = min(options.side_by_side, len(missing))
    if options.part is not None:
        _measure(missing[options.part :: side_by_side], results, options.within, describe, side_by_side=side_by_side)
        return False
    if not options.show and side_by_side > 1:
        _measure_side_by_side(module, side_by_side)
        results.read()
    elif not options.show:
        _measure(missing, results, options.within, describe, side_by_side=1)
    return True


def _measure(
    missing: Sequence[Cell], results: Results, within_s: float, describe: Describe, *, side_by_side: int
) -> None:
    deadline_s = time.monotonic() + within_s
    with shared_session(missing):
        if missing:
            warm_up(missing[0])
        for cell in missing:
            if time.monotonic() > deadline_s:
                break
            began_s, used_s = time.monotonic(), machine_cpu_s()
            result = run_cell(cell, with_series=True)
            busy = (machine_cpu_s() - used_s) / (time.monotonic() - began_s) / (os.cpu_count() or 1)
            here = {name: value for name, value in environment().items() if name in MACHINE}
            around = {"side_by_side": side_by_side, "machine_busy": round(busy, 2), "environment": here}
            results.add(cell.key, {**describe(cell, result), **around})


def _measure_side_by_side(module: str, count: int) -> None:
    """This command in as many processes, each with its part of what is missing."""
    command = [sys.executable, "-m", module, *sys.argv[1:], "--part"]
    chosen = " ".join(filter(None, (os.environ.get("JAVA_TOOL_OPTIONS"), QUICK_START)))
    variables = {**os.environ, "JAVA_TOOL_OPTIONS": chosen}
    run_side_by_side([[*command, str(number)] for number in range(count)], variables)


def shown(found: Estimate) -> str:
    """The mean and its interval."""
    if found.mean is None:
        return "-"
    return f"{found.mean:.3g}" if found.low is None else f"{found.mean:.3g} [{found.low:.3g}, {found.high:.3g}]"
