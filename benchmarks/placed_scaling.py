"""DS2 with CAPS and DS2 with random placement under a load that doubles twice and halves twice (CAPSys, table 4).

    python -m benchmarks.placed_scaling [--top 36000] [--phase 40] [--strategies caps,default] [--out FILE]

q5 without pacing on three workers of four slots with a third of a core each, after a run that is not counted and has
all the CPU there is, so that code is compiled. The order of the strategies turns with the seed. DS2 may decide every
five seconds. For every phase: decisions that changed something, the slots at its end, and the share of the arriving
records that were read in its last third. --top is the highest rate in records/s. Every finished run is kept in --out.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measuring import Results
from benchmarks.placed_load import START_S, engine_on, unpaced
from benchmarks.placed_workers import Workers, workers
from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.journal.file import MemoryJournal
from sluice.journal.results import CycleReport
from sluice.lab.spark_placing import SparkPlacement, cluster_of
from sluice.model import Target
from sluice.placement import placers
from sluice.placement.planner import UnitCosts
from sluice.protocol import policies
from sluice.spark.pipeline.specs import Generate
from sluice.spark.topic.interface import RecordLog, open_log

WORKERS, SLOTS, CPUS = 3, 4, 1 / 3
INTERVAL_S, COOLDOWN_S = 5.0, 8.0
TICK_S = 0.25
STEPS = (0.25, 0.5, 1.0, 0.5, 0.25)
MET = 0.95
WARM_UP_S = 50.0
SETTLING = 3
"""Cycles at the first rate before the first phase: what came while the queries started is read in them."""
FIRST = {"bids_source": 1, "sliding_window": 1, "sink": 1}


class Ladder:
    """Brings records at the rate of the phase; until `begin` at the first one's."""

    def __init__(self, source: str, generate: Generate, top: float, phase_s: float) -> None:
        self._source, self._generate, self._top, self._phase_s = source, generate, top, phase_s
        self._began_s: float | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        self._began_s = time.monotonic()

    def rate(self) -> float:
        elapsed_s = 0.0 if self._began_s is None else time.monotonic() - self._began_s
        return self._top * STEPS[min(int(elapsed_s / self._phase_s), len(STEPS) - 1)]

    def start(self, topics: Mapping[str, str]) -> None:
        self._thread = threading.Thread(target=self._run, args=(open_log(topics[self._source]),), daemon=True)
        self._thread.start()

    def check(self) -> None:
        pass

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, topic: RecordLog) -> None:
        began_s, last_s, fed, due, number = time.monotonic(), time.monotonic(), 0, 0.0, 0
        while not self._over.wait(TICK_S):
            now_s = time.monotonic()
            due += self.rate() * (now_s - last_s)
            last_s = now_s
            count = int(due) - fed
            if count:
                table = self._generate(fed, count, START_S + now_s - began_s, 1)
                topic.append(table.cast(topic.schema), producer="bench", batch_id=number)
                fed, number = fed + count, number + 1


def measure(
    there: Workers,
    strategy: str,
    seed: int,
    units: Mapping[str, UnitCosts],
    top: float,
    phase_s: float,
    *,
    limited: bool = True,
) -> Any:
    there.free()
    job = unpaced("q5", state_partitions=6, window_s=60.0, slide_s=20.0)
    generate = job.pipeline.sources["bids"].generate
    assert generate is not None
    ladder = Ladder("bids", generate, top, phase_s)
    root = there.folder / f"{strategy}-{seed}-{limited}"
    engine = engine_on(there, job.pipeline, ladder, root, bound=1_000_000)
    placement = SparkPlacement(
        placer=placers.create(strategy, {"seed": seed} if strategy in ("default", "evenly") else {}), units=units
    )
    present = cluster_of(engine)
    review = placement.review(present)
    journal = MemoryJournal()

    def begin(report: CycleReport) -> None:
        if report.cycle.cycle == 0 and limited:
            there.limit()
        if report.cycle.cycle == SETTLING:
            ladder.begin()

    Loop(
        engine=engine,
        decider=Decider(policies.create("ds2", {})),
        journal=journal,
        guards=Guards(cooldown_s=COOLDOWN_S),
        planner=placement.planner(present, review),
        reviewer=review,
    ).run(
        Target(parallelism=FIRST),
        duration_s=phase_s * len(STEPS) + (SETTLING + 1) * INTERVAL_S,
        interval_s=INTERVAL_S,
        on_report=begin,
    )
    return phases(journal.reports(), phase_s) if limited else None


def phases(reports: tuple[CycleReport, ...], phase_s: float) -> list[dict[str, Any]]:
    began_s = next(one.cycle.time_s for one in reports if one.cycle.cycle == SETTLING)
    found = []
    for number in range(len(STEPS)):
        first_s, last_s = began_s + number * phase_s, began_s + (number + 1) * phase_s
        inside = [one for one in reports if first_s < one.cycle.time_s <= last_s + 1.0]
        if not inside:
            continue
        late = [one.cycle.observation for one in inside if one.cycle.time_s > last_s - phase_s / 3]
        sources = [one.operators["bids_source"] for one in late]
        arrived = sum(one.arrival_rate or 0.0 for one in sources)
        counted = [one.operators["sliding_window"] for one in late]
        found.append(
            {
                "rate": round(arrived / max(1, len(sources))),
                "decisions": sum(one.result.is_action for one in inside),
                "slots": sum(inside[-1].cycle.target.parallelism.values()),
                "read_share": round(sum(one.input_rate or 0.0 for one in sources) / arrived, 3) if arrived else None,
                "window_share": round(sum(one.input_rate or 0.0 for one in counted) / arrived, 3) if arrived else None,
                "lag": sum(one.lag or 0.0 for one in (*late[-1].operators.values(),)) if late else None,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--top", type=float, default=36_000.0)
    parser.add_argument("--phase", type=float, default=40.0)
    parser.add_argument("--strategies", default="caps,default")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--profile", type=Path, help="results of placed_strategies, for the unit costs of q5")
    parser.add_argument("--out", type=Path, default=Path("placed-scaling.json"))
    given = parser.parse_args()
    results = Results(given.out)
    units: dict[str, UnitCosts] = {}
    if given.profile:
        known = Results(given.profile).found["q5 profile"]["units"]
        units = {name: UnitCosts(**unit) for name, unit in known.items()}
    names = given.strategies.split(",")
    seeds = [int(seed) for seed in given.seeds.split(",")]
    cases = [(names[(at + seed) % len(names)], seed) for seed in seeds for at in range(len(names))]
    left = [(name, seed) for name, seed in cases if f"{name} {seed}" not in results]
    if left:
        with workers("scaling", count=WORKERS, slots=SLOTS, cpus=CPUS) as there:
            measure(there, "evenly", 0, {}, given.top, WARM_UP_S / len(STEPS), limited=False)
            for name, seed in left:
                results.add(f"{name} {seed}", measure(there, name, seed, units, given.top, given.phase))
    for case, found in results.found.items():
        held = [one for one in found if (one["window_share"] or 0.0) >= MET]
        slots = [one["slots"] for one in found]
        decisions = [one["decisions"] for one in found]
        print(f"{case:<12} held {len(held)} of {len(found)} phases, decisions {decisions}, slots {slots}")


if __name__ == "__main__":
    main()
