"""Section 3 of CAPSys and its figure 5: what sharing a worker does to tasks, plan by plan.

The paper prints how many plans its queries have, not their parallelism. For a cluster that is just filled, one set of
numbers alone gives 950 plans for the five operators of Q3-inf, and one alone 665 for the six of Q2-join; which operator
has which number is assumed, heavy operators having more tasks. Four inference tasks fit on one worker, as in figure 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from sluice.lab.reproduce.base import Report, Row, Table, claim, figure, shown
from sluice.lab.reproduce.capsys_jobs import OURS_OR_THEIRS, StudiedQuery, inference, join, r5d_xlarge, sliding
from sluice.lab.reproduce.capsys_runs import MET, Measured, measure, must_place, request
from sluice.model import Cluster
from sluice.placement import placers
from sluice.placement.enumeration import NO_LIMITS, list_plans
from sluice.placement.problem import DIMENSIONS, Counts, Floats, PlacementProblem, build

WORKERS, SLOTS = 4, 4
SLIDING_TASKS = {"source": 1, "sink": 2, "map": 5, "window": 8}
INFERENCE_TASKS = {"source": 3, "transform": 5, "compress": 3, "inference": 4, "sink": 1}
JOIN_TASKS = {"auctions": 2, "persons": 1, "map auctions": 4, "map persons": 1, "join": 7, "sink": 1}
GBIT = 125e6
CONTENTIONS = ("low", "medium", "high")
MOST_PLANS = 2000
SEPARATES = {"cpu": True, "io": True, "net": False}
"""Figure 5: which costs tell the plans that meet the target from the worst; Q1-sliding sends little."""
TOLERANCES = "throughput within 10 %, backpressure within 25 % or 5 percentage points"
COSTS_ARE_OURS = "the query's costs are not published"


@dataclass(frozen=True)
class PlanStudy:
    """Every plan of a query on the small cluster of section 3.1."""

    query: StudiedQuery
    cluster: Cluster
    rate: float
    problem: PlacementProblem
    plans: tuple[Counts, ...]

    @staticmethod
    def of(query: StudiedQuery, tasks: Mapping[str, int], net: float | None = None) -> PlanStudy:
        """At the rate that an even cluster, and the tasks there are, can just carry."""
        machine = r5d_xlarge(1).workers[0]
        cluster = Cluster.uniform(WORKERS, SLOTS, cpu=machine.cpu, io=machine.io, net=net or machine.net)
        rate = min(query.target_rate(cluster), query.rate_of(tasks))
        problem = build(request(query, cluster, rate, tasks))
        plans, _ = list_plans(problem.arrays, NO_LIMITS, most=MOST_PLANS, budget=10**7)
        return PlanStudy(query, cluster, rate, problem, tuple(plans))

    def measure(self, plan: Counts, seed: int = 0) -> Measured:
        return measure(self.query, self.cluster, self.rate, self.problem.placement_of(plan), seed)

    def together(self, operator: str, plan: Counts) -> int:
        """The most tasks of the operator on one worker."""
        return int(plan[self.problem.operators.index(operator)].max())


def every_plan(report: Report) -> Table:
    """Figure 2."""
    study = PlanStudy.of(sliding(), SLIDING_TASKS)
    found = len(study.plans)
    report(f"{found} plans")
    shares = [study.measure(plan).throughput_share for plan in study.plans]
    best = must_place(placers.create("caps"), study.problem.request).placement
    assert best is not None
    chosen = measure(study.query, study.cluster, study.rate, best, 0).throughput_share
    return Table(
        name="figure2",
        title="Q1-sliding on 4 workers of 4 slots: every plan there is",
        rows=(
            claim("plans", "80", str(found), found == 80),
            figure("plans that meet the target", 3, sum(share >= MET for share in shares), fitted=True),
            figure("worst plan's throughput over the best's", round(9 / 14, 2), round(min(shares) / max(shares), 2)),
            claim("caps meets the target", "yes", f"{chosen:.1%}", chosen >= MET),
        ),
        notes=(OURS_OR_THEIRS, "the target was set with the paper's three plans in mind"),
    )


def costs_and_throughput(report: Report) -> Table:
    """Figure 5: which costs tell the plans that meet the target from the worst three of the 80."""
    study = PlanStudy.of(sliding(), SLIDING_TASKS)
    report("80 plans")
    shares = [study.measure(plan).throughput_share for plan in study.plans]
    worst = np.argsort(shares)[:3]
    good = [at for at, share in enumerate(shares) if share >= MET]
    costs = [study.problem.costs(plan) for plan in study.plans]
    rows = []
    for at, dimension in enumerate(DIMENSIONS):
        highest = max((costs[plan][at] for plan in good), default=np.inf)
        lowest = min(costs[plan][at] for plan in worst)
        words = f"at most {highest:.2f} in {len(good)} plans at the target, at least {lowest:.2f} in the worst three"
        said = "yes" if SEPARATES[dimension] else "not dominant"
        what = f"a threshold on {dimension} separates good plans from bad"
        rows.append(claim(what, said, words, bool(highest < lowest), said=SEPARATES[dimension]))
        rank = _rank_correlation([cost[at] for cost in costs], shares)
        rows.append(shown(f"rank correlation of throughput and {dimension} cost, 80 plans", None, round(rank, 2)))
    return Table(name="figure5", title="Q1-sliding: cost and throughput of plans", rows=tuple(rows))


@dataclass(frozen=True)
class ContentionFigure:
    """One part of figure 3. Printed: throughput with high over with low contention, and backpressure of both."""

    name: str
    title: str
    query: StudiedQuery
    tasks: Mapping[str, int]
    plans: int
    crowding: str
    """The operator whose tasks share workers."""
    throughput: tuple[float, float] | None = None
    backpressure: tuple[float, float] | None = None
    net: float | None = None


FIGURE_3 = {
    part.name: part
    for part in (
        ContentionFigure("figure3a", "Q3-inf, computing", inference(), INFERENCE_TASKS, 950, "inference"),
        ContentionFigure(
            "figure3b", "Q2-join, state access", join(), JOIN_TASKS, 665, "join", (110e3, 91e3), (0.04, 0.32)
        ),
        ContentionFigure(
            "figure3c",
            "Q3-inf, 1 Gbit/s per worker",
            inference(),
            INFERENCE_TASKS,
            950,
            "inference",
            (1555.0, 1185.0),
            (0.12, 0.37),
            GBIT,
        ),
    )
}


def contention(part: ContentionFigure, report: Report) -> Table:
    """All plans, grouped by how many heavy tasks share a worker; the paper picked three of each group."""
    study = PlanStudy.of(part.query, part.tasks, part.net)
    groups = _by_network(study, part.crowding) if part.net else _by_tasks_together(study, part.crowding)
    runs = {}
    for level, plans in groups.items():
        report(f"{level} contention")
        runs[level] = [study.measure(plan) for plan in plans]
    found = len(study.plans)
    same_as = "figure3a" if part.net else ""
    rows = [claim("plans", str(part.plans), str(found), found == part.plans, same_as=same_as)]
    rows += _contention_rows(part, runs, study.rate)
    sizes = ", ".join(f"{len(plans)} {level}" for level, plans in groups.items())
    how = "network cost, inference tasks spread" if part.net else f"{part.crowding} tasks on one worker"
    notes = (TOLERANCES, f"contention by {how}; plans: {sizes}; the paper picked three of each", OURS_OR_THEIRS)
    return Table(name=part.name, title=f"{part.title}: {study.rate:,.0f} records/s", rows=tuple(rows), notes=notes)


def _contention_rows(part: ContentionFigure, runs: Mapping[str, Sequence[Measured]], rate: float) -> list[Row]:
    share = {level: [run.throughput_share for run in found] for level, found in runs.items()}
    blocked = {level: [run.backpressure for run in found] for level, found in runs.items()}
    words = ", ".join(f"{level} {min(found):.0%} to {max(found):.0%}" for level, found in share.items())
    if part.net:
        higher, what = fmean(share["low"]) > fmean(share["high"]), "mean throughput is higher with low contention"
    else:
        higher = min(share["low"]) > max(share["high"])
        what = "every plan of low contention beats every plan of high"
    rows = [claim(what, "yes", words, higher)]
    words = ", ".join(f"{level} {fmean(found):.0%}" for level, found in blocked.items())
    less = fmean(blocked["low"]) < fmean(blocked["high"])
    rows.append(claim("backpressure is lower with low contention", "yes", words, less))
    if part.throughput and part.backpressure:
        low, high = part.throughput
        ours = fmean(share["high"]) / fmean(share["low"])
        rows.append(figure("throughput, high over low contention", round(high / low, 3), round(ours, 3), tolerance=0.1))
        for level, printed, absolute in zip(("low", "high"), part.backpressure, part.throughput, strict=True):
            rows.append(
                figure(f"backpressure, {level} contention", printed, round(fmean(blocked[level]), 3), least=0.05)
            )
            carried = round(fmean(share[level]) * rate)
            rows.append(shown(f"throughput, {level} contention", absolute, carried, unit="rec/s", note=COSTS_ARE_OURS))
    return rows


def _by_tasks_together(study: PlanStudy, operator: str) -> dict[str, list[Counts]]:
    """Spread as evenly as can be, as many on one worker as fit, and all between."""
    degrees = [study.together(operator, plan) for plan in study.plans]
    least, most = min(degrees), max(degrees)
    level = {least: "low", most: "high"}
    groups: dict[str, list[Counts]] = {name: [] for name in CONTENTIONS}
    for degree, plan in zip(degrees, study.plans, strict=True):
        groups[level.get(degree, "medium")].append(plan)
    return groups


def _by_network(study: PlanStudy, spread: str) -> dict[str, list[Counts]]:
    """Thirds by network cost, of the plans that spread the operator which computes most."""
    degrees = [study.together(spread, plan) for plan in study.plans]
    even = [plan for degree, plan in zip(degrees, study.plans, strict=True) if degree == min(degrees)]
    even.sort(key=lambda plan: float(study.problem.costs(plan)[DIMENSIONS.index("net")]))
    third = len(even) // 3
    return dict(zip(CONTENTIONS, (even[:third], even[third:-third], even[-third:]), strict=True))


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's, ties sharing their mean rank; 0 where one of the two never changes."""
    a, b = _ranks(first), _ranks(second)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: Sequence[float]) -> Floats:
    _, places, counts = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places], dtype=float)
