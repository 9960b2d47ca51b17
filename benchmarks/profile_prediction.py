"""Does a profile measured at some parallelisms predict the throughput at another? Predicted and measured side by side.

python -m benchmarks.profile_prediction [--short] [QUERY ...]

Every operator is profiled with 1, 2 and 4 slots; then the whole pipeline runs with 3 on Spark and on the simulator, the
sources overfed. Compared are the records/s every operator reads. An operator that waits for the one above it shows that
one's speed, not its own, in both. Slots are paced, as the pipelines' defaults are.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from sluice.control.engine import wait
from sluice.lab.generator.process import GeneratorProcess
from sluice.lab.generator.producer import Stream
from sluice.lab.pipelines import RunsOnSpark, pipelines
from sluice.lab.pipelines.profiled import ProfiledPipeline
from sluice.lab.profiling import MeasurementPlan, profile_job
from sluice.lab.profiling_place import Here
from sluice.lab.simulator import SimulatedEngine
from sluice.lab.workloads import rate_curve, workloads
from sluice.model import Observation, Target
from sluice.placement.request import Profile
from sluice.spark.pipeline.engine import SparkEngine, task_threads
from sluice.spark.pipeline.job import SparkJob
from sluice.spark.session import open_session

QUERIES = {"q1": {}, "q5": {"window_s": "20", "slide_s": "5"}, "wordcount": {}}
PROFILED_AT = (1, 2, 4)
PREDICTED_AT = 3
OVERFED = 1.5
TOLERANCE = 0.15


def overfed_rates(job: SparkJob, profile: Profile) -> dict[str, float]:
    """More than the operators behind each source can read at this parallelism."""
    costs = {operator.name: operator.costs for operator in profile.operators}
    rates = {}
    for source in job.peak_rates:
        reader = job.pipeline.consumers_of(source)[0]
        known = costs[reader]
        assert known is not None
        rates[source] = OVERFED * PREDICTED_AT * known.capacity[1]
    return rates


def on_spark(
    job: SparkJob, rates: dict[str, float], spark: SparkSession, root: Path, settle_s: float, measure_s: float
) -> Observation:
    steady = workloads.create("constant")
    streams = {}
    for source, rate in rates.items():
        generate = job.pipeline.sources[source].generate
        assert generate is not None, source
        streams[source] = Stream(generate=generate, curve=rate_curve(steady, peak_rate=rate, seed=0))
    feed = GeneratorProcess(streams, seed=0, report=root / "generator.json")
    engine = SparkEngine(job.pipeline, root, slots=64, spark=spark, feed=feed)
    engine.start(Target(parallelism=dict.fromkeys(engine.graph.names, PREDICTED_AT)))
    try:
        wait(engine, settle_s)
        engine.observe()
        wait(engine, measure_s)
        return engine.observe()
    finally:
        engine.stop()


def on_simulator(
    name: str, profile: Profile, job: SparkJob, rates: dict[str, float], settings: dict[str, str]
) -> Observation:
    definition = ProfiledPipeline(definition=pipelines.create(name, settings), profile=profile)
    steady = workloads.create("constant")
    curves = {}
    for source, rate in rates.items():
        reader = job.pipeline.consumers_of(source)[0]
        curves[reader] = rate_curve(steady, peak_rate=rate, seed=0)
    simulated = definition.simulated()
    engine = SimulatedEngine(replace(simulated), curves)
    engine.start(Target(parallelism=dict.fromkeys(simulated.graph.names, PREDICTED_AT)))
    wait(engine, 60)
    engine.observe()
    wait(engine, 60)
    return engine.observe()


def compare(name: str, predicted: Observation, measured: Observation) -> bool:
    """The slowest part decides: operators that read little (behind a window) are shown and not judged."""
    fine = True
    for operator, metrics in measured.operators.items():
        guess, found = predicted.operators[operator].input_rate or 0.0, metrics.input_rate or 0.0
        judged = guess > 50
        ratio = found / guess if guess else float("nan")
        ok = not judged or abs(ratio - 1) <= TOLERANCE
        fine &= ok
        note = "" if judged else "  (in bursts, not judged)"
        print(
            f"{name:<10}{operator:<16}{guess:>12,.0f}{found:>12,.0f}{ratio:>8.2f}  {'ok' if ok else 'OFF'}{note}",
            flush=True,
        )
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", nargs="*", metavar="QUERY", help="only these")
    parser.add_argument("--short", action="store_true", help="less time for every figure")
    arguments = parser.parse_args()
    measure_s = 8.0 if arguments.short else 20.0
    how = MeasurementPlan(parallelisms=PROFILED_AT, settle_s=5.0, measure_s=measure_s)
    fine = True
    print(f"records/s read with {PREDICTED_AT} slots per operator, profiled with {PROFILED_AT}")
    print(f"{'query':<10}{'operator':<16}{'predicted':>12}{'measured':>12}{'ratio':>8}")
    for name in arguments.queries or QUERIES:
        settings = QUERIES.get(name, {})
        definition = pipelines.create(name, settings)
        assert isinstance(definition, RunsOnSpark), name
        job = definition.spark()
        threads = task_threads(job.pipeline, len(job.pipeline.operators) * 4)
        spark = open_session(f"profile {name}", threads=threads).spark
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                root = Path(folder)
                say = lambda line: print(f"  {line}", file=sys.stderr, flush=True)  # noqa: E731
                profile = profile_job(name, job, spark, root / "profile", how, Here(spark), say)
                rates = overfed_rates(job, profile)
                measured = on_spark(job, rates, spark, root / "run", 15.0, measure_s)
                predicted = on_simulator(name, profile, job, rates, settings)
                fine &= compare(name, predicted, measured)
        finally:
            spark.stop()
        time.sleep(1)
    print(f"within {TOLERANCE:.0%}: {'yes' if fine else 'no'}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
