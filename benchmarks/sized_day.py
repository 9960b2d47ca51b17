"""A day of load in a few minutes on nodes of sizes: QEScalor, every single size with DS2, and who knew it all.

    python -m benchmarks.sized_day --minutes 20 --runs 3 --samples samples.json --out sized-day

Every cell is a `sluice run` of its own and stays in the folder; the same folder again goes on. Money is what the nodes
cost by their prices, starting and draining ones included. The clairvoyant is computed, not run: the cheapest mixes by
epochs for the rates that were generated and the rates in --samples, at the same target utilisation; it pays for starts
as QEScalor's plan does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.sized_jobs import TYPES, master
from sluice.journal.file import read_runs
from sluice.lab.summary import price_per_hour
from sluice.learning.qcesa import ScalingCosts, SizeOption, plan_horizon
from sluice.learning.sampled_sizes import load_samples

EPOCHS = 24
UTILISATION = 0.85
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


def command(policy: str, folder: Path, url: str, given: argparse.Namespace, seed: int) -> list[str]:
    duration_s = given.minutes * 60
    (folder / "jobs.py").write_text(PIPELINE)
    (folder / "sizes.json").write_text(json.dumps([one.to_data() for one in TYPES]))
    words = [sys.executable, "-c", "from sluice.cli import main; main()", "run", f"{folder / 'jobs.py'}:day"]
    words += ["--engine", "spark", "--master", url, "--nodes", str(folder / "sizes.json"), "--json", "--slo", "10"]
    words += ["--workload", "cosine", "--pipeline-set", f"peak_rate={given.rate}", "--duration", str(duration_s)]
    words += ["--interval", "5", "--seed", str(seed), "--root", str(folder / "work"), "--out", str(folder / "out")]
    words += ["--guard", "cooldown_s=10"]
    if policy == "qescalor":
        epoch_s = duration_s / EPOCHS
        words += ["--policy", "qescalor", "--node-type", "small", "--set", f"epoch_s={epoch_s}", "--set", "horizon=4"]
        words += ["--set", f"season_s={duration_s / given.days}", "--set", "catch_up_s=20"]
        words += ["--set", f"samples={given.samples}"] if given.samples else []
        return words
    return [*words, "--policy", "ds2", "--node-type", policy]


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
    costs = ScalingCosts(startup=30 * per_second, shutdown=10 * per_second)
    return plan_horizon([peaks[epoch] for epoch in sorted(peaks)], options, costs).cost


def measure(policy: str, folder: Path, given: argparse.Namespace, seed: int) -> dict[str, float]:
    folder.mkdir(parents=True, exist_ok=True)
    with master(folder / "cluster") as url:
        done = subprocess.run(command(policy, folder, url, given, seed), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{policy}: {done.stderr[-2000:]}")
    summary = json.loads(done.stdout)
    (run,) = read_runs(folder / "out")
    early = [cycle for cycle in run.cycles if "ahead of the next epoch" in cycle.recommendation.reason]
    result = {
        "price": summary["price"],
        "mean_price_per_hour": sum(price_per_hour(one.observation) for one in run.cycles) / len(run.cycles),
        "late": summary["slo_violation_ratio"],
        "p95_s": summary["p95_latency_s"],
        "rescales": summary["rescales"],
        "lost": summary["lost_records"],
        "twice": summary["duplicated_records"],
        "ahead": len([cycle for cycle in early if cycle.action == "apply"]),
    }
    if given.samples and policy == "qescalor":
        result["clairvoyant"] = clairvoyant_price(folder / "out", given.samples, given.minutes * 60 / EPOCHS)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--days", type=float, default=1.0, help="seasons within the run, for the forecast")
    parser.add_argument("--rate", type=float, default=30_000.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--policies", default=",".join(("qescalor", *(one.name for one in TYPES))))
    parser.add_argument("--samples", type=Path, help="of `sluice sample`, for QEScalor and the clairvoyant")
    parser.add_argument("--out", type=Path, default=Path("sized-day"))
    given = parser.parse_args()
    for seed in range(given.runs):
        for policy in given.policies.split(","):
            path = given.out.resolve() / f"{policy}-{seed}" / "result.json"
            if not path.exists():
                result = measure(policy, path.parent, given, seed)
                path.write_text(json.dumps(result))
            print(f"{policy} run {seed}: {path.read_text()}", flush=True)


if __name__ == "__main__":
    main()
