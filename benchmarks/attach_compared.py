"""One job, one load, one cluster: what users have today, and `attach`; what each costs and how late records are.

python -m benchmarks.attach_compared [--short] [--only NAME ...] [--runs N] [--within SECONDS] [--out DIR]

A stateful count under a step load (sluice/testing/step_load): a hundred records/s per executor of one core, paced by
sleeping tasks, so that four executors have four times the capacity of one on two cores. `fixed minimum` has one
executor, `fixed maximum` four, `dynamic allocation` is Spark's own with its defaults between one and four, `attach` is
sluice with DS2 and an objective of 10 s, `attach sluice`, `attach conttune` and the like are other policies, from
nothing, with the same objective; QEScalor plans every 15 s instead of every five minutes. Executor-seconds are counted
from the first record over the same time for all; latencies are of all records; a batch is late if a record of it waited
longer than the objective. Finished runs are kept in `--out`, and the same command goes on with what is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.measuring import Results
from sluice.spark.cluster.lifecycle import read_state
from sluice.testing.step_load.executors import ExecutorWatch
from sluice.testing.step_load.feed import LineFeed
from sluice.testing.step_load.job import DRAINING, difference, local_cluster, session, start_query, wait_for
from sluice.testing.step_load.latency import latencies

LOW, HIGH = 30.0, 200.0
OBJECTIVE_S = 10.0
MOST = 4
RUNS = 10
MEASURED = Path("benchmarks/measured/attach-compared.json")
MODES: dict[str, dict[str, str]] = {
    "fixed minimum": {"spark.cores.max": "1"},
    "fixed maximum": {"spark.cores.max": str(MOST)},
    "dynamic allocation": {
        "spark.cores.max": str(MOST),
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": str(MOST),
    },
    "attach": dict(DRAINING),
    "attach sluice": dict(DRAINING),
    "attach databricks": dict(DRAINING),
    "attach conttune": dict(DRAINING),
    "attach dragster": dict(DRAINING),
    "attach qescalor": dict(DRAINING),
}

SETTINGS: dict[str, dict[str, Any]] = {
    "ds2": {"least_drop": 1},
    # its epochs are minutes, the load's phases here one
    "qescalor": {"epoch_s": 15, "catch_up_s": 15, "season_s": 0},
}


@dataclass(frozen=True)
class Phases:
    """How long the load is low, high and low again, seconds."""

    before_s: float
    high_s: float
    after_s: float

    @property
    def total_s(self) -> float:
        return self.before_s + self.high_s + self.after_s


def run(mode: str, root: Path, home: Path, phases: Phases) -> dict[str, Any]:
    """In a process of its own: a JVM has one Spark application."""
    import sluice

    cluster = read_state(home)
    assert cluster is not None
    spark = session(cluster.master_url, **MODES[mode])
    attachment = None
    if mode.startswith("attach"):
        objective = f"latency<{OBJECTIVE_S:g}s"
        policy = mode.removeprefix("attach").strip() or "ds2"
        attachment = sluice.attach(
            spark,
            policy,
            policy_settings=SETTINGS.get(policy),
            max_executors=MOST,
            interval=3,
            cooldown=9,
            objective=objective,
            journal=root / "journal.jsonl",
        )
    feed = LineFeed(root / "in", 2.0)
    query = start_query(spark, root)
    feed.start()
    with ExecutorWatch(spark) as watch:
        # everybody's classes are loaded before the clock starts
        wait_for(lambda: query.lastProgress is not None and query.lastProgress.batchId >= 4, query, "warm-up")
        began_s = time.time()
        for records_per_s, duration_s in ((LOW, phases.before_s), (HIGH, phases.high_s), (LOW, phases.after_s)):
            feed.records_per_s = records_per_s
            time.sleep(duration_s)
        ended_s = time.time()
        feed.stop()
        query.processAllAvailable()
    if attachment is not None:
        attachment.detach()
        assert attachment.failure is None, attachment.failure
    query.stop()
    progress = [json.loads(one.json) for one in query.recentProgress]
    lost, repeated = difference(root, feed.written)
    measured = {name: at_s for name, at_s in feed.appeared.items() if at_s >= began_s}
    result = {
        "mode": mode,
        "executor_seconds": watch.executor_seconds(began_s, ended_s),
        "seconds": ended_s - began_s,
        **asdict(latencies(root, progress, measured, OBJECTIVE_S)),
        "lost": lost,
        "repeated": repeated,
        "records": feed.written,
        "executors": watch.changes(began_s, ended_s),
    }
    spark.stop()
    return result


def table(results: list[dict[str, Any]]) -> str:
    """A row per mode: means over its runs, with the least and the largest where there are several."""
    lines = [
        "| | runs | executor-seconds | of the maximum | p50 s | p95 s | longest s | batches late | lost / repeated |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for mode in dict.fromkeys(found["mode"] for found in results):
        runs = [found for found in results if found["mode"] == mode]
        used = [found["executor_seconds"] for found in runs]
        share = fmean(found["executor_seconds"] / (MOST * found["seconds"]) for found in runs)
        times = [spread([found[name] for found in runs], ".1f") for name in ("p50_s", "p95_s", "longest_s")]
        late, batches, lost, repeated = (
            sum(found[name] for found in runs) for name in ("batches_late", "batches", "lost", "repeated")
        )
        lines.append(
            f"| {mode} | {len(runs)} | {spread(used, '.0f')} | {share:.0%} | {' | '.join(times)} "
            f"| {late} of {batches} | {lost} / {repeated} |"
        )
    return "\n".join(lines)


def spread(values: list[float], form: str) -> str:
    mean = format(fmean(values), form)
    return mean if len(values) == 1 else f"{mean} ({min(values):{form}} to {max(values):{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="fifty seconds of load instead of two and a half minutes")
    parser.add_argument("--only", action="append", choices=list(MODES), help="run this one; may be repeated")
    parser.add_argument("--runs", type=int, choices=range(1, RUNS + 1), default=1, help="of every mode")
    parser.add_argument("--within", type=float, default=math.inf, help="seconds after which no run is begun")
    parser.add_argument("--out", type=Path, default=MEASURED)
    parser.add_argument("--inside", nargs=2, metavar=("MODE", "HOME"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    phases = Phases(10, 20, 20) if arguments.short else Phases(20, 60, 70)
    if arguments.inside:
        mode, home = arguments.inside
        arguments.out.mkdir(parents=True, exist_ok=True)
        result = run(mode, arguments.out, Path(home), phases)
        (arguments.out / "result.json").write_text(json.dumps(result))
        return
    deadline_s = time.monotonic() + arguments.within
    cases = {f"{mode} {number}": mode for number in range(arguments.runs) for mode in arguments.only or MODES}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        results = Results(Path(folder) / "short.json" if arguments.short else arguments.out)
        missing = [case for case in cases if case not in results]
        home = Path(folder) / "cluster"
        with local_cluster(home) if missing else nullcontext():
            for case in missing:
                if time.monotonic() > deadline_s:
                    break
                path = Path(folder) / case.replace(" ", "-")
                again = [sys.executable, "-m", "benchmarks.attach_compared", "--inside", cases[case], str(home)]
                again += ["--out", str(path), *(["--short"] if arguments.short else [])]
                subprocess.run(again, check=True, stderr=subprocess.DEVNULL)
                results.add(case, json.loads((path / "result.json").read_text()))
        print(table(list(results.found.values())))


if __name__ == "__main__":
    main()
