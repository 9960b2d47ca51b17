"""Do tasks run where the placement says while DS2 rescales, CAPS places, and workers and driver are killed?

    python -m benchmarks.placed_followed [--queries q3,q5] [--batches 200] [--kills 5] [--out placed-followed]

Three workers of four slots, of which the third joins later. The load goes up and down. Workers are killed with
`kill -9`, one after the other, and started again some seconds later; half way the driver is killed, too, and a second
one goes on in the same folder. In the end the output is compared, row by row, with that of another engine. Every
finished query is kept in --out, and another call goes on with the next one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measuring import end_on_sigterm
from sluice.control.guards import Guards
from sluice.journal.file import FileJournal, read_runs
from sluice.lab.pipelines import RunsOnSpark, pipelines
from sluice.lab.run import RunSpec, run
from sluice.lab.spark_placing import SparkPlacement, cluster_of
from sluice.lab.workloads import workloads
from sluice.model import Target
from sluice.placement import placers
from sluice.protocol import policies
from sluice.spark.cluster import lifecycle, standalone
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.folders import last_batches
from sluice.spark.pipeline.job import SparkJob
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.placed.cluster import PLACED_SETTINGS, SETTINGS
from sluice.spark.session import open_session
from sluice.spark.topic.interface import open_log
from sluice.testing.answers.check import finish_query
from sluice.testing.answers.reference import ANSWERS, ReferenceAnswer, Tables, inputs

WORKERS, SLOTS = 3, 4
STATE_PARTITIONS = 6
AWAY_S, BETWEEN_S = 3.0, 10.0
BLOCK_S = 0.5
PERIOD_S = 60.0
LONGEST_S = 270.0


class Waves:
    """Brings blocks of records at a rate that goes up and down; those that an earlier driver brought count once."""

    def __init__(self, blocks: list[Tables]) -> None:
        self._blocks = blocks
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, topics: Mapping[str, str]) -> None:
        self._thread = threading.Thread(target=self._run, args=(dict(topics),), daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return self._thread is not None and not self._thread.is_alive()

    def check(self) -> None:
        pass

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, topics: dict[str, str]) -> None:
        logs = {source: open_log(locator) for source, locator in topics.items()}
        for number, block in enumerate(self._blocks):
            new = [
                logs[source].append(table.cast(logs[source].schema), producer="test", batch_id=number) is not None
                for source, table in block.items()
            ]
            load = 0.6 - 0.4 * math.cos(2 * math.pi * number * BLOCK_S / PERIOD_S)
            if any(new) and self._over.wait(BLOCK_S / load):
                return


def job_of(answer: ReferenceAnswer, *, paced: bool) -> SparkJob:
    definition = pipelines.create(answer.query, {**answer.settings, "paced": paced})
    assert isinstance(definition, RunsOnSpark)
    job = definition.spark()
    for name, spec in job.pipeline.operators.items():
        job.pipeline.operators[name] = replace(spec, state_partitions=STATE_PARTITIONS)
    return job


def blocks_of(answer: ReferenceAnswer, seconds: float) -> list[Tables]:
    job = job_of(answer, paced=True)
    count = round(seconds / BLOCK_S)
    return inputs(job, round(sum(job.peak_rates.values()) * seconds), span_s=seconds, blocks=count)


def drive(query: str, folder: Path, master: str, batches: int, seconds: float) -> None:
    """The driver: DS2 and CAPS until so many batches are done, then everything else as fast as it goes."""
    answer = next(one for one in ANSWERS if one.query == query)
    root, blocks = folder / "work", blocks_of(answer, seconds)
    feed = Waves(blocks)
    with open_session(f"followed {query}", threads=1, master=master, settings={**SETTINGS, **PLACED_SETTINGS}) as spark:
        engine = SparkEngine(
            job_of(answer, paced=True).pipeline,
            root,
            spark=spark,
            master=master,
            places=True,
            settings=QuerySettings(trigger_s=0.5),
            feed=feed,
        )
        present = cluster_of(engine)
        placement = SparkPlacement(placer=placers.create("caps"))
        review = placement.review(present)
        run(
            RunSpec(
                pipeline=pipelines.create(query, dict(answer.settings)),
                policy=policies.create("ds2"),
                workload=workloads.create("constant"),
                engine="spark",
                guards=Guards(cooldown_s=6.0),
                duration_s=LONGEST_S,
                interval_s=6.0,
            ),
            engine,
            Target(parallelism=dict.fromkeys(engine.graph.names, 1)),
            FileJournal(folder / "journal.jsonl", durable=False),
            planner=placement.planner(present, review),
            reviewer=review,
            should_stop=lambda: (folder / "no-more-kills").exists() and (batches_done(root) >= batches or feed.is_done),
        )
        done = batches_done(root)
        job = job_of(answer, paced=False)
        last = SparkEngine(job.pipeline, root, spark=spark, master=master, places=True)
        last.start(Target(parallelism=dict.fromkeys(last.graph.names, 2)))
        rows = finish_query(answer, job, last, root, blocks)
    (folder / "answer.json").write_text(json.dumps({"rows": rows, "batches": done}))


def batches_done(root: Path) -> int:
    return sum(last_batches(one)[1] + 1 for one in (root / "checkpoints").glob("*"))


def measure(query: str, folder: Path, batches: int, kills: int, seconds: float) -> dict[str, Any]:
    end_on_sigterm()
    home = folder / "cluster"
    state = standalone.up(home, workers=WORKERS, slots=SLOTS)
    os.kill(state.process_ids[f"worker-{WORKERS - 1}"], signal.SIGKILL)
    over = threading.Event()
    killer = threading.Thread(target=kill_and_revive, args=(folder, kills, over))
    command = [sys.executable, "-m", "benchmarks.placed_followed", "--drive", query, "--out", str(folder)]
    command += ["--master", state.master_url, "--batches", str(batches), "--seconds", str(seconds)]
    try:
        first = subprocess.Popen(command, start_new_session=True)
        killer.start()
        while first.poll() is None and not (folder / "kill-driver").exists():
            time.sleep(0.5)
        if first.poll() is not None:
            raise SystemExit(f"{query}: the driver ended too soon")
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        again_s = time.monotonic()
        second = subprocess.Popen(command, start_new_session=True)
        while second.poll() is None and len(read_runs(folder)) < 2:
            time.sleep(0.5)
        resumed_s = time.monotonic() - again_s
        (folder / "driver-is-back").touch()
        if second.wait():
            raise SystemExit(f"{query}: the second driver ended with {second.returncode}")
    finally:
        over.set()
        killer.join()
        lifecycle.down(home)
    return {**counted(folder), "kills": kills, "driver_back_s": round(resumed_s, 1)}


def counted(folder: Path) -> dict[str, Any]:
    runs = read_runs(folder)
    seen = [cycle.observation.placement for run in runs for cycle in run.cycles if cycle.observation.placement]
    placed, followed = sum(one.placed for one in seen), sum(one.followed for one in seen)
    displaced = sum(one.displaced for one in seen)
    answer = json.loads((folder / "answer.json").read_text())
    end = runs[-1].end
    return {
        "batches": answer["batches"],
        "placed_tasks": placed,
        "followed": followed,
        "displaced": displaced,
        "followed_share": round(followed / placed, 4),
        "followed_share_where_the_executor_lived": round(followed / (placed - displaced), 4),
        "rescales": sum(report.result.is_action for run in runs for report in run.reports),
        "rows_equal": answer["rows"],
        "lost": end.records.lost if end else None,
        "twice": end.records.duplicated if end else None,
        "resumed_as_placed": held(runs[-1].cycles[0].target) == held(runs[-2].cycles[-1].target),
    }


def held(target: Target) -> dict[str, dict[str, int]]:
    """Instances of the workers that have any."""
    tasks = target.placement.tasks if target.placement else {}
    return {worker: dict(counts) for worker, counts in tasks.items() if counts}


def kill_and_revive(folder: Path, kills: int, over: threading.Event) -> None:
    """Workers one after the other, once batches are done; the driver in the middle."""
    home, root = folder / "cluster", folder / "work"
    while batches_done(root) < 10 and not over.wait(0.5):
        pass
    lifecycle.revive(home)
    for number in range(kills):
        if over.wait(BETWEEN_S):
            return
        if number == kills // 2:
            (folder / "kill-driver").touch()
            while not (folder / "driver-is-back").exists() and not over.wait(0.5):
                pass
            over.wait(BETWEEN_S)
        state = lifecycle.read_state(home)
        if state is None:
            return
        os.kill(state.process_ids[f"worker-{number % WORKERS}"], signal.SIGKILL)
        over.wait(AWAY_S)
        lifecycle.revive(home)
    over.wait(BETWEEN_S)
    (folder / "no-more-kills").touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default="q3,q5")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=80.0, help="of full load that there are records for")
    parser.add_argument("--out", type=Path, default=Path("placed-followed"))
    parser.add_argument("--drive", metavar="QUERY", help=argparse.SUPPRESS)
    parser.add_argument("--master", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drive:
        drive(given.drive, given.out, given.master, given.batches, given.seconds)
        return
    for query in given.queries.split(","):
        done = given.out.resolve() / query / "result.json"
        if not done.exists():
            done.parent.mkdir(parents=True, exist_ok=True)
            figures = measure(query, done.parent, given.batches, given.kills, given.seconds)
            done.write_text(json.dumps(figures))
        print(f"{query}: {done.read_text()}", flush=True)


if __name__ == "__main__":
    main()
