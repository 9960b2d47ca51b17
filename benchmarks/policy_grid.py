"""Policies on jobs and loads drawn from seeds: compared, with parts turned off, and with what they rely on broken.

python -m benchmarks.policy_grid [--short] [--part compare|ablation|sensitivity] [--split dev|held-out] [--live]

Every finished run is a line of the file, so the same command goes on where it was stopped. Cost is slots over those
of the clairvoyant planner, late the share of time above 30 s; the planner's own plan is run as well, to see how far it
keeps its word. The policy was developed on `dev`; `held-out` was only looked at. Means are also given apart for jobs in
which windows fire into bounded buffers. The thesis' own grid: `sluice bench`; decision times: `benchmarks.policies`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

from benchmarks.policy_cases import PATTERNS, Case, DrawnJob
from sluice.control.guards import Guards
from sluice.journal.file import MemoryJournal
from sluice.journal.records import Choice
from sluice.lab.clairvoyant import ClairvoyantPolicy, demand, plan
from sluice.lab.run import run, simulated_engine
from sluice.lab.scores import Oracle, score
from sluice.lab.summary import summarise
from sluice.model import Observation, OperatorMetrics, Recommendation, Target
from sluice.protocol import Memory, Policy, decides_during_cooldown, policies

SPLITS = {"dev": 1000, "held-out": 20_000}
SLO_S, MAX_SLOTS = 30.0, 80
CLAIRVOYANT = "clairvoyant"
RIVALS = ("ds2", "ds2:catch_up_s=120", "hpa-varga", "conttune", "flink", "databricks")
REACTIVE = ("ds2:catch_up_s=120", "hpa-varga", "flink", "databricks")
SWITCHES = ("forecast", "band", "drain", "action_cost", "curve", "saturation", "doubt")
CONDITIONS = ("as it is", "forecast is noise", "capacities twice", "capacities half", "metrics missing", "slow sink")
MISSING = 0.3
Row = dict[str, Any]
OPTIONAL = [name for name in OperatorMetrics.model_fields if name != "parallelism"]


@dataclass(frozen=True)
class Distorted:
    """Shows a policy something else than there is."""

    inner: Policy
    condition: str

    @property
    def decides_during_cooldown(self) -> bool:
        return decides_during_cooldown(self.inner)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        if self.condition == "forecast is noise":
            with patch("sluice.policies.sluice.outlook", _noise):
                return self.inner.decide(observation, memory)
        return self.inner.decide(_distorted(observation, self.condition), memory)


def _noise(past: Sequence[float], steps: int, **_: bool) -> list[list[float]]:
    chance = random.Random(repr(past[-1]))
    return [[past[-1] * chance.uniform(0.3, 1.7) for _ in range(steps)] for _ in range(8)]


def _distorted(observation: Observation, condition: str) -> Observation:
    operators = {}
    for name, metrics in observation.operators.items():
        changed: dict[str, float | None] = {}
        if condition.startswith("capacities") and metrics.busy:
            # who computes input / busy is wrong by this factor
            factor = 2.0 if condition == "capacities twice" else 0.5
            busy = min(1.0, metrics.busy / factor)
            true = None if metrics.input_rate is None else metrics.input_rate / busy
            changed = {"busy": busy, "true_input_rate": true, "idle": None}
        if condition == "metrics missing":
            chance = random.Random(f"{observation.time_s} {name}")
            changed = {metric: None for metric in OPTIONAL if chance.random() < MISSING}
        operators[name] = metrics.model_copy(update=changed)
    return observation.model_copy(update={"operators": operators})


@dataclass(frozen=True)
class Task:
    case: Case
    policy: str
    condition: str = "as it is"

    @property
    def key(self) -> str:
        return json.dumps([asdict(self.case), self.policy, self.condition], sort_keys=True)


def run_task(task: Task) -> Row:
    oracle = _oracle(task.case)
    spec = task.case.spec(_policy(task, oracle))
    engine, initial = simulated_engine(spec)
    if task.policy == CLAIRVOYANT:
        # it knows when to act, so nothing but the slots there are limits it
        spec = replace(spec, guards=Guards(max_slots=MAX_SLOTS))
        initial = Target(parallelism=dict(oracle.plan.steps[0][1].parallelism))
    journal = MemoryJournal()
    run(spec, engine, initial, journal)
    reports = journal.reports()
    summary = summarise(reports, journal.end(), SLO_S)
    cost = score(reports, oracle).cost_ratio
    return {"key": task.key, "cost": cost or 0.0, "late": summary.slo_violation_ratio, "actions": summary.rescales}


def _policy(task: Task, oracle: Oracle) -> Policy:
    if task.policy == CLAIRVOYANT:
        return ClairvoyantPolicy(oracle.plan)
    choice = Choice.parse_text(task.policy)
    chosen = policies.create(choice.name, choice.settings)
    return chosen if task.condition in ("as it is", "slow sink") else Distorted(chosen, task.condition)


@lru_cache(maxsize=4)
def _oracle(case: Case) -> Oracle:
    needs = demand(case.spec(policies.create("static")))
    return Oracle(needs, plan(needs, slo_s=SLO_S, max_slots=MAX_SLOTS))


def cases(split: str, jobs: int, *, live: bool, slow_sink: float | None = None) -> list[Case]:
    """Every job under one pattern, so that few runs see many jobs."""
    return [
        Case(job=job, pattern=PATTERNS[job % len(PATTERNS)], seed=job % 3, live=live, slow_sink=slow_sink)
        for job in range(SPLITS[split], SPLITS[split] + jobs)
    ]


def tasks_of(part: str, split: str, jobs: int, *, live: bool) -> list[Task]:
    drawn = cases(split, jobs, live=live)
    if part == "compare":
        return [Task(case, policy) for case in drawn for policy in (CLAIRVOYANT, "sluice", *RIVALS)]
    if part == "ablation":
        variants = ("sluice", *(f"sluice:{switch}=false" for switch in SWITCHES))
        return [Task(case, policy) for case in drawn for policy in variants]
    found = []
    for condition in CONDITIONS:
        chosen = cases(split, jobs, live=live, slow_sink=0.7) if condition == "slow sink" else drawn
        found += [Task(case, policy, condition) for case in chosen for policy in ("sluice", *REACTIVE)]
    return found


def results(tasks: Sequence[Task], file: Path, processes: int) -> dict[str, Row]:
    """Those in the file, and those run now."""
    done = {row["key"]: row for row in _rows(file)}
    left = [task for task in tasks if task.key not in done]
    file.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(processes) as pool, open(file, "a") as out:
        for row in pool.map(run_task, left, chunksize=8):
            out.write(json.dumps(row) + "\n")
            out.flush()
            done[row["key"]] = row
    return {task.key: done[task.key] for task in tasks}


def _rows(file: Path) -> Iterator[Row]:
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    yield from (json.loads(line) for line in lines)


def show(tasks: Sequence[Task], found: dict[str, Row]) -> None:
    bursty = {job: DrawnJob(seed=job).is_bursty for job in {task.case.job for task in tasks}}
    kinds = {"all": (False, True), "flowing": (False,), "bursts": (True,)}
    for condition in dict.fromkeys(task.condition for task in tasks):
        print(f"\n{condition}\n{'policy':<26}" + "".join(f"{kind:>8}  cost    late actions" for kind in kinds))
        for policy in dict.fromkeys(task.policy for task in tasks):
            line = f"{policy:<26}"
            for wanted in kinds.values():
                rows = [
                    found[task.key]
                    for task in tasks
                    if (task.policy, task.condition) == (policy, condition) and bursty[task.case.job] in wanted
                ]
                if rows:
                    cost, late, actions = (fmean(row[name] for row in rows) for name in ("cost", "late", "actions"))
                    line += f"{len(rows):>8}{cost:>6.2f}{late:>8.1%}{actions:>8.1f}"
            print(line)
    ours = [task for task in tasks if task.policy == "sluice" and task.condition == "as it is"]
    beaten = [
        f"{task.case.job}/{task.case.pattern} by {other.policy}"
        for task in ours
        for other in tasks
        if other.case == task.case and other.condition == "as it is" and other.policy in RIVALS
        if all(found[other.key][name] < found[task.key][name] for name in ("cost", "late"))
    ]
    print(f"\nbetter in both cost and lateness: {len(beaten)} of {len(ours)} cases; {', '.join(beaten) or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="two jobs")
    parser.add_argument("--part", choices=("compare", "ablation", "sensitivity"), default="compare")
    parser.add_argument("--split", choices=tuple(SPLITS), default="held-out")
    parser.add_argument("--live", action="store_true", help="rescales stop nothing, and there is no cooldown")
    parser.add_argument("--jobs", type=int, default=28)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/policy-grid.jsonl"))
    options = parser.parse_args()
    tasks = tasks_of(options.part, options.split, 2 if options.short else options.jobs, live=options.live)
    show(tasks, results(tasks, options.out, options.processes))


if __name__ == "__main__":
    main()
