"""What observing and deciding costs: CPU time of all processes with the control loop over that without it.

python -m benchmarks.spark_control_overhead [--short]

A stateless and a counting operator under a constant load. Stretches with the loop (latencies sampled and Spark's stage
data fetched every second, an observation and a decision of DS2 every five) and stretches without it take turns in one
run, so both do the same work on the same machine. The listener that adapts the read limit runs in both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import SteadyFeed, cpu_s
from benchmarks.spark_soak import events, pipeline

from sluice.engines.spark.clock import SAMPLE_S
from sluice.engines.spark.engine import SparkEngine
from sluice.model import Plan
from sluice.policies import policies

RECORDS_PER_S = 100_000.0
STRETCH_S = 10.0
DECIDE_EVERY_S = 5.0


def with_control(engine: SparkEngine) -> None:
    policy, memory = policies.create("ds2", {}), {}
    for _ in range(round(STRETCH_S / DECIDE_EVERY_S)):
        engine.clock.sleep_s(DECIDE_EVERY_S)
        _, memory = policy.decide(engine.observe(), memory)


def without_control(_: SparkEngine) -> None:
    for _ in range(round(STRETCH_S / SAMPLE_S)):
        time.sleep(SAMPLE_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="three pairs of stretches instead of twelve")
    pairs = 3 if parser.parse_args().short else 12
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        engine = SparkEngine(pipeline(), Path(folder), slots=4, feed=SteadyFeed("events", RECORDS_PER_S, events))
        engine.start(Plan(parallelism={"double": 2, "count": 2}))
        with_control(engine)
        with_control(engine)
        ratios = []
        for number in range(pairs):
            spent_s = {}
            order = (with_control, without_control) if number % 2 else (without_control, with_control)
            for stretch in order:
                before_s = cpu_s()
                stretch(engine)
                spent_s[stretch] = cpu_s() - before_s
            ratios.append(spent_s[with_control] / spent_s[without_control])
            print(
                f"pair {number}: CPU {spent_s[with_control]:.2f} s with, {spent_s[without_control]:.2f} s without",
                flush=True,
            )
            engine.observe()
        spread = statistics.stdev(ratios) / len(ratios) ** 0.5
        print(f"with over without: {statistics.mean(ratios):.3f} +- {spread:.3f} (aim: below 1.03)")
        engine.stop()


if __name__ == "__main__":
    main()
