"""Policies compared on the thesis' grid and on drawn jobs, with parts turned off, and with what they rely on broken.

python -m benchmarks.policy_grid [--part thesis|drawn|ablation|sensitivity] [--live] [--split dev|held-out] [--short]

Every finished run is a line of the file, so the same command goes on where it was stopped; the clairvoyant plan of a
case is made once. Lines of source that has changed since are dropped, and run again. One at a time on a file. Cost is
slots over those of that plan, late the share of time above 30 s; the plan is run as well, to see how far it keeps its
word. The policy was developed on `dev`; `held-out` is to be looked at once. Decision times: `benchmarks.policies`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.policy_cases import PATTERNS, Case, DrawnCase, ThesisCase
from benchmarks.policy_distorted import AS_IT_IS, CONDITIONS, SLOW_SINK, Distorted
from benchmarks.source_fingerprint import fingerprint
from sluice.control.guards import Guards
from sluice.files import replace_file
from sluice.journal.file import MemoryJournal
from sluice.journal.records import Choice
from sluice.lab.bench.local import prepare_worker
from sluice.lab.clairvoyant import ClairvoyantPolicy, demand, plan
from sluice.lab.run import run, simulated_engine
from sluice.lab.summary import summarise
from sluice.model import Target
from sluice.protocol import policies

QUERIES = ("q1", "q2", "q3", "q5", "q8", "q11")
LOADS = ("cosine", "random", "increasing", "decreasing", "convergence")
SPLITS = {"dev": 1000, "held-out": 600_000}
"""First seed of the jobs: 50,000 and up and 520,000 and up were looked at while the policy was made."""
SLO_S, MAX_SLOTS = 30.0, 80
CLAIRVOYANT, OURS = "clairvoyant", "sluice"
LEARNERS = ("conttune", "dragster")
RIVALS = ("ds2", "ds2:catch_up_s=120", "dhalion", "hpa-cpu", "hpa-varga", "flink", "databricks", *LEARNERS)
REACTIVE = ("ds2:catch_up_s=120", "hpa-varga", "flink", "databricks")
SWITCHES = ("forecast", "band", "drain", "action_cost", "curve", "saturation", "doubt")
MEASURED = Path(__file__).parent / "measured" / "policy-grid.jsonl"
VARIANTS = (OURS, *(f"{OURS}:{switch}=false" for switch in SWITCHES))
Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    case: Case
    policy: str
    condition: str = AS_IT_IS

    @property
    def key(self) -> str:
        return json.dumps([asdict(self.case), self.policy, self.condition], sort_keys=True)

    @property
    def source(self) -> str:
        """Of the code that the run depends on."""
        return _source(Choice.parse_text(self.policy).name)

    @property
    def planned(self) -> Task:
        """The clairvoyant's run of the same case."""
        return Task(self.case, CLAIRVOYANT)


@cache
def _source(policy: str) -> str:
    return fingerprint("" if policy == CLAIRVOYANT else policies.get(policy).__module__)


def run_task(task: Task) -> Row:
    extra: Row = {}
    if task.policy == CLAIRVOYANT:
        needs = demand(task.case.spec(policies.create("static")))
        planned = plan(needs, slo_s=SLO_S, max_slots=MAX_SLOTS)
        extra = {"planned_slot_seconds": round(planned.slot_seconds, 1)}
        # it knows when to act, so nothing but the slots there are limits it
        spec = replace(task.case.spec(ClairvoyantPolicy(planned)), guards=Guards(max_slots=MAX_SLOTS))
        engine, _ = simulated_engine(spec)
        initial = Target(parallelism=dict(planned.steps[0][1].parallelism))
    else:
        choice = Choice.parse_text(task.policy)
        policy = policies.create(choice.name, choice.settings)
        spec = task.case.spec(policy if task.condition in (AS_IT_IS, SLOW_SINK) else Distorted(policy, task.condition))
        engine, initial = simulated_engine(spec)
    journal = MemoryJournal()
    run(spec, engine, initial, journal)
    summary = summarise(journal.reports(), journal.end(), SLO_S)
    return {
        "key": task.key,
        "source": task.source,
        "slot_seconds": round(summary.slot_seconds, 1),
        "late": round(summary.slo_violation_ratio, 6),
        "actions": summary.rescales,
        **extra,
    }


def thesis_tasks(policies: Sequence[str], seeds: int, *, live: bool) -> list[Task]:
    """Seed by seed: a stopped run has some seeds of everything."""
    return [
        Task(ThesisCase(query=query, load=load, seed=seed, live=live), policy)
        for seed, query, load, policy in itertools.product(range(seeds), QUERIES, LOADS, policies)
    ]


def drawn(split: str, jobs: int, *, live: bool, slow_sink: float | None = None) -> list[DrawnCase]:
    """Every job under one pattern, so that few runs see many jobs."""
    return [
        DrawnCase(job=job, pattern=PATTERNS[job % len(PATTERNS)], seed=job % 3, live=live, slow_sink=slow_sink)
        for job in range(SPLITS[split], SPLITS[split] + jobs)
    ]


def sensitivity_tasks(split: str, jobs: int, *, live: bool) -> list[Task]:
    as_it_is, slow = drawn(split, jobs, live=live), drawn(split, jobs, live=live, slow_sink=0.7)
    return [
        Task(case, policy, condition)
        for condition in CONDITIONS
        for case in (slow if condition == SLOW_SINK else as_it_is)
        for policy in (OURS, *REACTIVE)
    ]


def results(tasks: Sequence[Task], file: Path, processes: int) -> dict[str, Row]:
    """Those in the file, and those run now."""
    done = stored(file)
    wanted = {task.key: task for each in tasks for task in (each.planned, each)}
    left = [task for key, task in wanted.items() if key not in done]
    file.parent.mkdir(parents=True, exist_ok=True)
    if left:
        # a forked child would inherit locks of numba's threads
        context = multiprocessing.get_context("spawn")
        with context.Pool(processes, prepare_worker) as pool, open(file, "a") as out:
            for row in pool.imap_unordered(run_task, left):
                out.write(json.dumps(row) + "\n")
                out.flush()
                done[row["key"]] = row
        replace_file(file, "".join(json.dumps(done[key]) + "\n" for key in sorted(done)).encode())
    return {key: done[key] for key in wanted}


def stored(file: Path) -> dict[str, Row]:
    """The rows of a file, without those that the present source might not give."""
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    rows = [json.loads(line) for line in lines]
    return {row["key"]: row for row in rows if row["source"] == _source(_policy_of(row))}


def _policy_of(row: Row) -> str:
    return Choice.parse_text(json.loads(row["key"])[1]).name


@dataclass(frozen=True)
class Figures:
    """Means over runs."""

    runs: int
    cost: float
    late: float
    actions: float

    @staticmethod
    def of(tasks: Sequence[Task], found: dict[str, Row]) -> Figures:
        rows = [found[task.key] for task in tasks]
        planned = [found[task.planned.key]["planned_slot_seconds"] for task in tasks]
        cost = fmean(row["slot_seconds"] / least for row, least in zip(rows, planned, strict=True))
        return Figures(len(rows), cost, fmean(row["late"] for row in rows), fmean(row["actions"] for row in rows))

    def __str__(self) -> str:
        return f"{self.runs:>6}{self.cost:>7.3f}{self.late:>8.2%}{self.actions:>8.1f}"


def show(tasks: Sequence[Task], found: dict[str, Row]) -> None:
    kinds = list(dict.fromkeys(task.case.kind for task in tasks))
    for condition in dict.fromkeys(task.condition for task in tasks):
        print(
            f"\n{condition}\n{'policy':<26}" + "".join(f"{kind:>9}  cost    late actions" for kind in ("all", *kinds))
        )
        for policy in dict.fromkeys(task.policy for task in tasks):
            own = [task for task in tasks if (task.policy, task.condition) == (policy, condition)]
            split = [own, *([task for task in own if task.case.kind == kind] for kind in kinds)]
            print(f"{policy:<26}" + "".join(str(Figures.of(each, found)) for each in split if each))
    _show_pairs([task for task in tasks if task.condition == AS_IT_IS], found)


def _show_pairs(tasks: Sequence[Task], found: dict[str, Row]) -> None:
    """Ours on every pair of job and load, and who is better in both cost and lateness, on the seeds both ran."""
    pairs = list(dict.fromkeys(task.case.pair for task in tasks))
    rivals = [policy for policy in dict.fromkeys(task.policy for task in tasks) if policy in RIVALS]
    print(f"\n{OURS:<20}  runs   cost    late actions  better in both cost and lateness")
    beaten = 0
    for pair in pairs:
        own = [task for task in tasks if task.case.pair == pair and task.policy == OURS]
        better = []
        for rival in rivals:
            theirs = [task for task in tasks if task.case.pair == pair and task.policy == rival]
            cases = {task.case for task in theirs}
            both = [task for task in own if task.case in cases]
            if both:
                ours, other = Figures.of(both, found), Figures.of(theirs, found)
                if other.cost < ours.cost and other.late < ours.late:
                    better.append(f"{rival} {other.cost:.3f} {other.late:.2%}")
        beaten += bool(better)
        if own:
            print(f"{pair:<20}{Figures.of(own, found)}  {'; '.join(better)}")
    print(f"beaten in both on {beaten} of {len(pairs)} pairs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="two jobs, or one seed of the thesis' grid")
    parser.add_argument("--part", choices=("thesis", "drawn", "ablation", "sensitivity"), default="thesis")
    parser.add_argument("--split", choices=tuple(SPLITS), default="held-out")
    parser.add_argument("--live", action="store_true", help="rescales stop nothing, and there is no cooldown")
    parser.add_argument("--jobs", type=int, default=28)
    parser.add_argument("--seeds", type=int, default=10, help="of the thesis' grid")
    parser.add_argument("--learners-seeds", type=int, default=2, help=f"of the slow ones: {', '.join(LEARNERS)}")
    parser.add_argument("--policy", action="append", help="only this one; repeatable")
    parser.add_argument("--show", action="store_true", help="run nothing: what the file has so far")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=MEASURED)
    options = parser.parse_args()
    live, jobs = options.live, 2 if options.short else options.jobs
    if options.part == "thesis":
        seeds = 1 if options.short else options.seeds
        tasks = thesis_tasks((CLAIRVOYANT, OURS, *(each for each in RIVALS if each not in LEARNERS)), seeds, live=live)
        tasks += thesis_tasks(LEARNERS, min(seeds, options.learners_seeds), live=live)
    elif options.part == "sensitivity":
        tasks = sensitivity_tasks(options.split, jobs, live=live)
    else:
        compared = VARIANTS if options.part == "ablation" else (CLAIRVOYANT, OURS, *RIVALS)
        tasks = [Task(case, policy) for case in drawn(options.split, jobs, live=live) for policy in compared]
    if options.policy:
        tasks = [task for task in tasks if task.policy in options.policy]
    if options.show:
        done = stored(options.out)
        show([task for task in tasks if {task.key, task.planned.key} <= done.keys()], done)
    else:
        show(tasks, results(tasks, options.out, options.processes))


if __name__ == "__main__":
    main()
