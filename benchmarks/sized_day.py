"""A day of load in a few minutes on nodes of sizes: QEScalor, every single size with DS2, and who knew it all.

    python -m benchmarks.sized_day --minutes 20 --runs 3 --samples samples.json
    python -m benchmarks.sized_day --side-by-side 2 --cells 1 ...             # two policies at a time, one day each
    python -m benchmarks.sized_day --minutes 7 --epochs 8 ...                 # a short day

A cell is a `sluice run` of its own. Its result, and what QEScalor remembers of the days before, stay in --out, and the
same command goes on with the next cell; the run itself is in --work. Money is what the nodes cost by their prices,
starting and draining ones included. Nodes have quotas, so policies may run side by side as long as the machine has
cores left: how busy it was is in every row. The clairvoyant is computed, not run: the cheapest mixes by epochs for the
rates that were generated and the rates in --samples, at the same target utilisation; it pays for starts as QEScalor's
plan does. Figure 2 of the paper, what the day has cost so far, is drawn of the first day that is complete.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Results, end_on_sigterm, machine_cpu_s, run_side_by_side
from benchmarks.sized_jobs import TYPES, master
from sluice.journal.file import read_runs
from sluice.lab.sizing.figures import draw_costs
from sluice.lab.summary import price_per_hour
from sluice.learning.qcesa import ScalingCosts, SizeOption, plan_horizon
from sluice.learning.sampled_sizes import load_samples

UTILISATION = 0.85
STARTUP_S, SHUTDOWN_S = 30, 10
"""What a start and a stop cost, in seconds of a core: about as long as they take."""
NIGHT, NOISE = 0.1, 0.04
"""Load at midnight, and how much a quarter of an hour may differ, as shares of the peak."""
MEMORY = "memory.json"
MEASURED = Path(__file__).parent / "measured"
POINTS = 48
"""Of a cost curve that is kept."""
PIPELINE = """
import numpy as np
import pyarrow as pa
from benchmarks.sized_jobs import digest as digested
from sluice import Pipeline

def numbers(first, count, time_s, seed):
    return pa.table({"id": np.arange(first, first + count)})

day = Pipeline("day")
day.source("numbers", "id BIGINT", generate=numbers)

@day.operator
def digest(numbers):
    return digested(numbers)

day.sink("out", digest)
"""


@dataclass(frozen=True)
class CostCurve:
    """What one cell has cost so far, by the hour of its day."""

    time_s: list[float]
    cost: list[float]

    @property
    def total_cost(self) -> float:
        return self.cost[-1]

    def thinned(self, points: int) -> CostCurve:
        """The last point of each part of the day."""
        count = len(self.time_s)
        last = sorted({math.ceil(count * (point + 1) / points) - 1 for point in range(points)})
        return CostCurve([round(self.time_s[one], 1) for one in last], [round(self.cost[one], 6) for one in last])


def command(policy: str, folder: Path, url: str, given: argparse.Namespace, seed: int) -> list[str]:
    duration_s = given.minutes * 60
    (folder / "jobs.py").write_text(PIPELINE)
    (folder / "sizes.json").write_text(json.dumps([one.to_data() for one in TYPES]))
    words = [sys.executable, "-c", "from sluice.cli import main; main()", "run", f"{folder / 'jobs.py'}:day"]
    words += ["--engine", "spark", "--master", url, "--nodes", str(folder / "sizes.json"), "--json", "--slo", "10"]
    words += ["--workload", "trace", "--workload-set", f"path={day_of_load(folder, seed)}", "--workload-set", "peak=1"]
    words += ["--pipeline-set", f"peak_rate={given.rate}", "--duration", str(duration_s)]
    words += ["--interval", "5", "--seed", str(seed), "--root", str(folder / "work"), "--out", str(folder / "out")]
    words += ["--guard", "cooldown_s=10"]
    if policy == "qescalor":
        epoch_s = duration_s / given.epochs
        words += ["--policy", "qescalor", "--node-type", "small", "--set", f"epoch_s={epoch_s}", "--set", "horizon=4"]
        words += ["--set", f"startup_cost_s={STARTUP_S}", "--set", f"shutdown_cost_s={SHUTDOWN_S}"]
        words += ["--set", f"season_s={duration_s}", "--set", "catch_up_s=20", "--memory", str(folder / MEMORY)]
        words += ["--set", f"samples={given.samples}"] if given.samples else []
        return words
    return [*words, "--policy", "ds2", "--node-type", policy]


def day_of_load(folder: Path, seed: int) -> Path:
    """From night to night in quarters of an hour, the peak at noon; by the seed a few per cent more or less."""
    quarter = np.arange(96)
    wave = (1 - np.cos(2 * np.pi * quarter / 96)) / 2
    noise = np.random.default_rng(seed).uniform(-NOISE, NOISE, 96)
    loads = np.clip(NIGHT + (1 - NIGHT) * wave + noise, 0.0, 1.0)
    path = folder / "load.csv"
    rows = [f"{minute},{load:.6f}" for minute, load in enumerate(loads)]
    path.write_text("\n".join(["minute,rate", *rows, ""]))
    return path


def clairvoyant_price(out: Path, samples: Path, epoch_s: float) -> float:
    """Of the cheapest mixes for the peaks of the epochs, as the run's own journal has them."""
    (run,) = read_runs(out)
    peaks: dict[int, float] = {}
    for cycle in run.cycles:
        arrived = cycle.observation.operators["digest"].arrival_rate or 0.0
        epoch = int(cycle.time_s / epoch_s)
        peaks[epoch] = max(peaks.get(epoch, 0.0), arrived)
    rates = load_samples(str(samples))["digest"].rates([one.size for one in TYPES])
    options = [
        SizeOption(name=one.name, performance=rates[one.name] * UTILISATION, price=one.price_per_hour * epoch_s / 3600)
        for one in TYPES
    ]
    per_second = TYPES[1].price_per_hour / TYPES[1].cpu_cores / 3600
    costs = ScalingCosts(startup=STARTUP_S * per_second, shutdown=SHUTDOWN_S * per_second)
    return plan_horizon([peaks[epoch] for epoch in sorted(peaks)], options, costs).cost


def measure(policy: str, given: argparse.Namespace, seed: int, before: dict[str, Any] | None) -> dict[str, Any]:
    """From an empty folder: a cell that was interrupted begins again. `before` is the result of the day before."""
    folder = given.work / f"{policy}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if before is not None and "memory" in before:
        (folder / MEMORY).write_text(json.dumps(before["memory"]))
    with master(folder / "cluster") as url:
        began_s, used_s = time.monotonic(), machine_cpu_s()
        done = subprocess.run(command(policy, folder, url, given, seed), capture_output=True, text=True)
        busy = (machine_cpu_s() - used_s) / (time.monotonic() - began_s) / (os.cpu_count() or 1)
    if done.returncode:
        raise SystemExit(f"{policy}: {done.stderr[-2000:]}")
    summary = json.loads(done.stdout)
    (run,) = read_runs(folder / "out")
    early = [cycle for cycle in run.cycles if "ahead of the next epoch" in cycle.recommendation.reason]
    curve = cost_curve(folder / "out", given.minutes)
    result = {
        "price": summary["price"],
        "mean_price_per_hour": sum(price_per_hour(one.observation) for one in run.cycles) / len(run.cycles),
        "late": summary["slo_violation_ratio"],
        "p95_s": summary["p95_latency_s"],
        "rescales": summary["rescales"],
        "lost": summary["lost_records"],
        "twice": summary["duplicated_records"],
        "ahead": len([cycle for cycle in early if cycle.action == "apply"]),
        "side_by_side": given.beside,
        "machine_busy": round(busy, 2),
        "curve": asdict(curve.thinned(POINTS)),
    }
    if (folder / MEMORY).exists():
        result["memory"] = json.loads((folder / MEMORY).read_text())
    if given.samples and policy == "qescalor":
        result["clairvoyant"] = clairvoyant_price(folder / "out", given.samples, given.minutes * 60 / given.epochs)
    return result


def cost_curve(out: Path, minutes: float) -> CostCurve:
    (run,) = read_runs(out)
    spent = [price_per_hour(one.observation) * one.observation.interval_s / 3600 for one in run.cycles]
    day_s = [one.time_s * 24 * 60 / minutes for one in run.cycles]
    return CostCurve(day_s, list(itertools.accumulate(spent)))


def measure_side_by_side(policies: Sequence[str], count: int) -> None:
    """This command in as many processes, each with its part of the policies."""
    command = [sys.executable, "-m", "benchmarks.sized_day", *sys.argv[1:], "--side-by-side=1", f"--beside={count}"]
    parts = [policies[number::count] for number in range(min(count, len(policies)))]
    run_side_by_side([[*command, "--policies", ",".join(part)] for part in parts])


def draw(policies: Sequence[str], done: Mapping[tuple[str, int], dict[str, Any]], given: argparse.Namespace) -> None:
    """Of the first day that all policies have run."""
    for seed in range(given.runs):
        if all((policy, seed) in done for policy in policies):
            curves = {
                "QCESA" if policy == "qescalor" else policy: CostCurve(**done[policy, seed]["curve"])
                for policy in policies
            }
            draw_costs(curves, given.work / "figure2.html")
            return


def main() -> None:
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--epochs", type=int, default=24, help="of a day; nodes take half a minute to come")
    parser.add_argument("--rate", type=float, default=100_000.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cells", type=int, help="so many now, of each process; default: all that are left")
    parser.add_argument("--side-by-side", type=int, default=1, help="so many policies at a time")
    parser.add_argument("--beside", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--policies", default=",".join(("qescalor", *(one.name for one in TYPES))))
    parser.add_argument("--samples", type=Path, help="of `sluice sample`, for QEScalor and the clairvoyant")
    parser.add_argument("--out", type=Path, default=MEASURED / "sized-day.json")
    parser.add_argument("--work", type=Path, default=Path("build/sized-day"), help="runs, and the picture")
    given = parser.parse_args()
    given.work = given.work.resolve()
    results = Results(given.out)
    policies = given.policies.split(",")
    if given.side_by_side > 1:
        measure_side_by_side(policies, given.side_by_side)
        results.read()
        given.cells = 0
    load = f"{given.minutes:g}min-{given.epochs}-{given.rate:g}"
    keys = {(policy, seed): f"{policy}-{seed}-{load}" for seed in range(given.runs) for policy in policies}
    for policy, seed in [cell for cell, key in keys.items() if key not in results][: given.cells]:
        before = results.found.get(f"{policy}-{seed - 1}-{load}")
        results.add(keys[policy, seed], measure(policy, given, seed, before))
    done = {cell: results.found[key] for cell, key in keys.items() if key in results}
    for (policy, seed), found in done.items():
        shown = {name: value for name, value in found.items() if name not in ("curve", "memory")}
        print(f"{policy} run {seed}: {json.dumps(shown)}", flush=True)
    draw(policies, done, given)


if __name__ == "__main__":
    main()
