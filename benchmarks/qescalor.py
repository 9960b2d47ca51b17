"""What planning with instance sizes costs and saves.

QCESA's time by epochs and by sizes; DSA against FSSA on operators it was not tuned on; a day's cost against every
fixed size. What real operators do on nodes of different sizes is `benchmarks.sized_capacity`.

python -m benchmarks.qescalor [--short] [--out DIR]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from sluice.lab.sizing.day import DailyLoad, DaySettings, compare_planners
from sluice.lab.sizing.figures import draw_costs, draw_service
from sluice.lab.sizing.operators import OPERATORS, SizedOperator
from sluice.lab.sizing.samplers import compare_samplers
from sluice.learning.instance_sizes import EXAMPLE, ResourceCurve
from sluice.learning.qcesa import HorizonPlan, ScalingCosts, SizeOption, plan_horizon, plan_one_size

COSTS = ScalingCosts(startup=0.002, shutdown=0.0005)
PEAK_RATE = 16_000.0


def options(sizes: int = 6) -> list[SizeOption]:
    """The example's sizes with a concave rate, so that none dominates another; prices for 15 minutes."""
    return [
        SizeOption(name=size.name, performance=1000 * size.cpu_cores**0.9, price=size.price_per_hour / 4)
        for size in EXAMPLE[:sizes]
    ]


def loads(epochs: int) -> list[float]:
    return [float(rate) for rate in PEAK_RATE * (0.6 + 0.4 * np.sin(2 * np.pi * np.arange(epochs) / 96))]


def timed(epochs: int, sizes: int, repeats: int) -> tuple[float, HorizonPlan]:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        plan = plan_horizon(loads(epochs), options(sizes), COSTS)
        best = min(best, time.process_time() - start)
    return best, plan


def planning(repeats: int) -> None:
    day_s, plan = timed(96, 6, repeats)
    print(f"QCESA, 96 epochs x 6 sizes: {day_s:.3f} s of CPU, {plan.candidates:,} mixes; target: below 1 s")
    for epochs in (24, 48, 192, 384):
        seconds, _ = timed(epochs, 6, repeats)
        print(f"  {epochs:4d} epochs take {seconds / day_s:5.2f} times as long; linear would be {epochs / 96:.2f}")
    for sizes in (2, 4):
        seconds, few = timed(96, sizes, repeats)
        print(f"  {sizes} sizes take {seconds / day_s:5.2f} times as long, {few.candidates:,} mixes")
    fixed = {option.name: plan_one_size(loads(96), option, COSTS).cost / plan.cost for option in options()}
    print("  one size alone costs, relative to QCESA: " + ", ".join(f"{k} {v:.3f}" for k, v in fixed.items()))


def unseen_operators(count: int, seed: int) -> None:
    """Drawn only after the thresholds were fixed: no seed used here was looked at while choosing them."""
    chance = np.random.default_rng(seed)
    errors, samples = [], []
    for number in range(count):
        memory = number % 2
        curve = ResourceCurve(
            rate_per_core=1000,
            threads=chance.uniform(1.5, 3.5),
            contention=chance.uniform(0, 0.2),
            coherence=chance.uniform(0, 0.03),
            overhead_mb=memory * chance.uniform(100, 400),
            working_set_mb=memory * chance.uniform(1000, 4000),
            miss_penalty=memory * chance.uniform(0.5, 3),
        )
        scores = compare_samplers(SizedOperator(f"random{number}", "random", curve), repeats=1)
        errors.append(scores["DSA"].rmse / min(s.rmse for name, s in scores.items() if name != "DSA"))
        samples.append(scores["DSA"].samples / scores["FSSA2"].samples)
    within, fewer = np.array(errors) <= 1.2, np.array(samples) <= 1.0
    print(f"DSA on {count} random operators (seed {seed}), one run each:")
    print(f"  RMSE {np.median(errors):.2f} of the best FSSA's (median),")
    print(f"  at most 1.2 for {within.mean():.0%}; samples {np.median(samples):.2f} of FSSA2's (median),")
    print(f"  no more for {fewer.mean():.0%}; both for {(within & fewer).mean():.0%}")


def day(interval_s: float, days: int, out: Path | None) -> None:
    operator = next(operator for operator in OPERATORS if operator.name == "CMO1")
    for seed in range(days):
        runs = compare_planners(operator, DaySettings(interval_s=interval_s, load=DailyLoad(seed=seed)))
        if out and seed == 0:
            draw_costs(runs, out / "qescalor-figure2.html")
            draw_service(runs, out / "qescalor-figure3.html")
        ours = runs.pop("QCESA")
        ratios = ", ".join(f"{name} {run.total_cost / ours.total_cost:.2f}" for name, run in runs.items())
        print(f"day {seed}, forecast off by {ours.forecast_error:.1%}: cost relative to QCESA: {ratios}")
        longest = max(run.summary.max_latency_s for run in runs.values())
        print(f"  longest wait: QCESA {ours.summary.max_latency_s:.1f} s, fixed sizes up to {longest:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="fewer repeats, operators and days")
    parser.add_argument("--out", type=Path, help="folder for figures 2 and 3")
    given = parser.parse_args()
    planning(repeats=1 if given.short else 5)
    for seed in (101,) if given.short else (101, 202):
        unseen_operators(count=4 if given.short else 30, seed=seed)
    day(interval_s=300.0 if given.short else 60.0, days=1 if given.short else 3, out=given.out)


if __name__ == "__main__":
    main()
