"""What observing and deciding costs: CPU time of the control loop over that of everything else, in one run.

python -m benchmarks.spark_control_overhead [--short]

A stateless and a counting operator under a constant load; latencies sampled and Spark's stage data fetched every
second, an observation and a decision of DS2 every five. The loop's time is counted where it is spent, by thread: in
Python, in the JVM's thread that answers it, and in the listener that takes progress events. Comparing stretches with
and without the loop would not tell: two stretches of the same load differ by a tenth.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import JvmThreads, SteadyFeed, cpu_s
from benchmarks.spark_soak import events, pipeline
from sluice.control.engine import wait
from sluice.model import Target
from sluice.protocol import EMPTY_MEMORY, policies
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.ledgers import Ledgers

RECORDS_PER_S = 100_000.0
WARM_UP_S = 60.0
DECIDE_EVERY_S = 5.0


class MeteredLedgers(Ledgers):
    """Note what Spark's listener costs: the thread it is called in does nothing else."""

    listening_s = 0.0

    def _on_progress(self, progress: Mapping[str, Any]) -> None:
        super()._on_progress(progress)
        self.listening_s = time.thread_time()


@dataclass(frozen=True)
class CpuTimes:
    """CPU seconds so far."""

    python_s: float
    jvm_s: float
    listener_s: float
    everything_s: float


def spent(ledgers: MeteredLedgers, threads: JvmThreads) -> CpuTimes:
    return CpuTimes(time.thread_time(), threads.cpu_s()["loop"], ledgers.listening_s, cpu_s())


def run_loop(engine: SparkEngine, duration_s: float) -> None:
    policy, memory = policies.create("ds2"), EMPTY_MEMORY
    for _ in range(round(duration_s / DECIDE_EVERY_S)):
        wait(engine, DECIDE_EVERY_S)
        _, memory = policy.decide(engine.observe(), memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="half a minute instead of two")
    window_s = 30.0 if parser.parse_args().short else 120.0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        engine = SparkEngine(pipeline(), Path(folder), slots=4, feed=SteadyFeed("events", RECORDS_PER_S, events))
        engine.ledgers = ledgers = MeteredLedgers(engine.spark, engine.runtime)
        engine.start(Target(parallelism={"double": 2, "count": 2}))
        run_loop(engine, WARM_UP_S)
        threads = JvmThreads(engine.spark)
        threads.note("loop")
        before = spent(ledgers, threads)
        run_loop(engine, window_s)
        after = spent(ledgers, threads)
        parts = {
            "the loop in Python": after.python_s - before.python_s,
            "its thread in the JVM": after.jvm_s - before.jvm_s,
            "progress listener": after.listener_s - before.listener_s,
        }
        rest_s = after.everything_s - before.everything_s - sum(parts.values())
        for name, part_s in parts.items():
            print(f"{name:22} {part_s / window_s * 1000:6.2f} ms CPU per second, {part_s / rest_s:.2%} of the rest")
        print(f"{'everything else':22} {rest_s / window_s * 1000:6.0f} ms CPU per second")
        print(f"metrics and control over everything else: {sum(parts.values()) / rest_s:.2%} (aim: below 3 %)")
        engine.stop()


if __name__ == "__main__":
    main()
