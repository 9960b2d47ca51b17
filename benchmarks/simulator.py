"""How much faster than life the simulator is, policy included, and how that grows with the size of a job.

python -m benchmarks.simulator [--short] [--commands]

In this process CPU time counts, of the whole command the time from its start to its end, imports included.
"""

from __future__ import annotations

import argparse
import itertools
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sluice.control.decider import Decider
from sluice.control.loop import Loop
from sluice.journal.file import FileJournal, Journal, MemoryJournal
from sluice.lab.pipelines import pipelines
from sluice.lab.run import RunSpec, run, simulated_engine
from sluice.lab.simulator import Linear, SimulatedEngine, SimulatedJob, SimulatedOperator, chain
from sluice.lab.workloads import workloads
from sluice.model import Target
from sluice.protocol import DEFAULT_POLICY, policies

TARGET_RATIO = 50_000


def query_11_ratio(repeats: int, journal: Callable[[], Journal]) -> float:
    """140 simulated minutes at 1 s, DS2 every 15 s: simulated time over CPU time (one core), best of several."""
    best = 0.0
    for seed in range(repeats + 1):
        spec = RunSpec(
            pipeline=pipelines.create("q11"),
            policy=policies.create("ds2"),
            workload=workloads.create("cosine"),
            seed=seed,
        )
        start = time.process_time()
        engine, initial = simulated_engine(spec)
        run(spec, engine, initial, journal())
        elapsed_s = time.process_time() - start
        if seed > 0:  # the first run compiles
            best = max(best, spec.whole_duration_s / elapsed_s)
    return best


def command_ratio(policy: str, duration_s: float, repeats: int) -> float:
    """Of `sluice run` in a process of its own, the best of several: the first may compile."""
    command = [sys.executable, "-c", "from sluice.cli import main; main()", "run", "q11", "--engine", "sim", "--json"]
    command += ["--policy", policy, "--duration", str(duration_s)]
    best_s = math.inf
    for _ in range(repeats):
        began_s = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        best_s = min(best_s, time.perf_counter() - began_s)
    return duration_s / best_s


def report_commands(repeats: int) -> None:
    for policy in ("ds2", DEFAULT_POLICY):
        for hours in (1, 6, 24, 24 * 7):
            ratio = command_ratio(policy, 3600.0 * hours, repeats)
            print(
                f"sluice run q11 --engine sim --policy {policy} --duration {hours}h: {ratio:,.0f} times real time "
                f"({ratio / TARGET_RATIO:.2f} of the target)",
                flush=True,
            )


def seconds_for(operators: int, simulated_s: int) -> float:
    names = [f"op{number}" for number in range(operators)]
    job = SimulatedJob(
        operators=tuple(SimulatedOperator(name=name, capacity=Linear(1000.0)) for name in names), edges=chain(*names)
    )
    engine = SimulatedEngine(job, {names[0]: lambda times_s: np.full_like(times_s, 1500.0)})
    loop = Loop(engine=engine, decider=Decider(policies.create("ds2")), journal=MemoryJournal())
    start = time.process_time()
    loop.run(Target(parallelism=dict.fromkeys(names, 1)), duration_s=simulated_s, interval_s=15)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="fewer repeats and a shorter time")
    parser.add_argument("--commands", action="store_true", help="only the whole command")
    given = parser.parse_args()
    short = given.short
    if given.commands:
        report_commands(2 if short else 4)
        return
    with tempfile.TemporaryDirectory() as folder:
        numbers = itertools.count()
        journals: dict[str, Callable[[], Journal]] = {
            "in memory": MemoryJournal,
            "in a file": lambda: FileJournal(Path(folder) / f"{next(numbers)}.jsonl", durable=False),
        }
        for where, journal in journals.items():
            ratio = query_11_ratio(2 if short else 10, journal)
            print(
                f"q11 x cosine x ds2, 140 min, journal {where}: {ratio:,.0f} times real time "
                f"({ratio / TARGET_RATIO:.2f} of the target)"
            )
    simulated_s = 300 if short else 1500
    sizes = (5, 50, 500)
    seconds = {size: min(seconds_for(size, simulated_s) for _ in range(3)) for size in sizes}
    for size in sizes:
        print(f"{size:4d} operators: {simulated_s / seconds[size]:10,.0f} times real time")
    exponent = np.polyfit(np.log(sizes), np.log([seconds[size] for size in sizes]), 1)[0]
    print(f"growth from {sizes[0]} to {sizes[-1]} operators: time ~ operators^{exponent:.2f} (1 is linear)")


if __name__ == "__main__":
    main()
