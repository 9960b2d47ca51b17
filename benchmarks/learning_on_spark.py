"""Do the learning policies find the optimum on real Spark? WordCount and query 5 with paced slots, constant load.

Slots are paced: each task processes at most so many records/s, so the parallelism that just carries the load is known.
Spark's scheduling, shuffles, state and checkpoints are real, and may cost a paced slot some of its rate; the optimum is
therefore also given for slots that reach only 85 % of it.

python -m benchmarks.learning_on_spark [--short]
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sluice.control.guards import Guards
from sluice.journal.file import MemoryJournal
from sluice.journal.results import CycleReport
from sluice.lab.pipelines import PipelineDefinition, pipelines
from sluice.lab.run import RunSpec, run
from sluice.lab.spark_run import SparkSettings, spark_engine
from sluice.lab.workloads import workloads
from sluice.protocol import policies

REACHED = 0.85
INTERVAL_S = 15.0
"""Batches take two seconds: seven to a window."""
JOBS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("wordcount", {"peak_rate": "45000"}),
    ("q5", {"peak_rate": "65000", "slide_s": "5", "window_s": "10"}),
)
POLICIES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("conttune", {"max_parallelism": "8"}),
    ("dragster", {"max_parallelism": "6"}),
    ("dragster", {"max_parallelism": "6", "method": "gradient"}),
)


def optimum(pipeline: PipelineDefinition, reached: float) -> dict[str, int]:
    """Instances per operator that carry the load with slots of `reached` of their pace; all chains."""
    flow, found = pipeline.peak_rate, {}
    for operator in pipeline.simulated().operators:
        found[operator.name] = max(1, math.ceil(flow / (operator.capacity(1) * reached) - 1e-9))
        flow *= operator.selectivity
    return found


def reports_of(
    pipeline: PipelineDefinition, name: str, settings: Mapping[str, str], duration_s: float
) -> tuple[CycleReport, ...]:
    spec = RunSpec(
        pipeline=pipeline,
        policy=policies.create(name, settings),
        workload=workloads.create("constant"),
        guards=Guards(max_slots=24),
        duration_s=duration_s,
        interval_s=INTERVAL_S,
        seed=1,
    )
    journal = MemoryJournal()
    with tempfile.TemporaryDirectory(prefix="sluice-", ignore_cleanup_errors=True) as folder:
        engine, initial = spark_engine(spec, SparkSettings(slots=24), Path(folder))
        run(spec, engine, initial, journal)
    return journal.reports()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="WordCount only, and four minutes")
    parser.add_argument("--duration", type=float, default=300.0, help="seconds per run")
    parser.add_argument(
        "--policy", action="append", choices=sorted({name for name, _ in POLICIES}), help="only this one"
    )
    arguments = parser.parse_args()
    duration_s = 240.0 if arguments.short else arguments.duration
    chosen = [found for found in POLICIES if not arguments.policy or found[0] in arguments.policy]
    for job, job_settings in JOBS[:1] if arguments.short else JOBS:
        pipeline = pipelines.create(job, job_settings)
        ideal, real = optimum(pipeline, 1.0), optimum(pipeline, REACHED)
        print(f"{job}: optimum {ideal} ({sum(ideal.values())} slots), at {REACHED:.0%} of the pace {real}", flush=True)
        for name, settings in chosen:
            reports = reports_of(pipeline, name, settings, duration_s)
            changed = [report.cycle.time_s for report in reports if report.result.is_action]
            final = reports[-1].cycle.target.parallelism
            away = {op: final[op] - ideal[op] for op in ideal}
            last_s = changed[-1] if changed else 0.0
            print(
                f"  {name} {settings.get('method', '')}: {final} ({sum(final.values()) / sum(ideal.values()):.2f} of "
                f"the optimal slots, off by {away}), {len(changed)} reconfigurations, the last at {last_s:.0f} s",
                flush=True,
            )
            for report in reports:
                print(f"    {report.cycle.time_s:4.0f} s {report.cycle.recommendation.reason[:160]}", flush=True)


if __name__ == "__main__":
    main()
