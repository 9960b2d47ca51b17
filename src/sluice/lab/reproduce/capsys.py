"""The experiments of CAPSys (EuroSys 2025) again, on the simulator: placement alone, and together with DS2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sluice.lab.reproduce.base import Report, Row, Table, claim, figure, reproduction, shown
from sluice.lab.reproduce.capsys_jobs import (
    StudiedQuery,
    c5d_4xlarge,
    inference,
    m5d_2xlarge,
    r5d_xlarge,
    six_queries,
    sliding,
)
from sluice.lab.reproduce.capsys_profiles import compare_profiles
from sluice.lab.reproduce.capsys_runs import (
    MET,
    Measured,
    measure,
    must_place,
    request,
)
from sluice.lab.reproduce.capsys_scaling import Step, accuracy, convergence
from sluice.lab.reproduce.capsys_tenants import Tenants
from sluice.model import Placement
from sluice.placement import Placer, placers
from sluice.placement.enumeration import NO_LIMITS, list_plans
from sluice.placement.problem import build
from sluice.registry import parameter

STRATEGIES = ("caps", "default", "evenly")
RATES = (720.0, 1440.0, 2880.0, 1440.0, 720.0)
PAPER_TABLE_4 = {
    "caps": ("yes yes",) * 4,
    "default": ("no yes", "no no", "no no", "yes yes"),
    "evenly": ("yes yes", "yes no", "no no", "no no"),
}
"""Per step: was the target met, and were the slots not more than needed."""
Boxes = Mapping[str, Mapping[str, list[Measured]]]
"""StudiedQuery -> strategy -> runs."""
TENANTS_SHARE = 0.72
"""Of the rates of the queries alone, so that six queries fit on 18 workers instead of six times four."""
SET_UP = (
    "Simulated with operators' costs of ours. Targets of figures 2, 7 and 8 are ours (where a perfectly even cluster "
    "would use 85 % of its scarcest resource); the rates of tables 3 and 4 and of figure 9 are the paper's.",
)


@reproduction("capsys")
@dataclass(frozen=True, kw_only=True)
class Capsys:
    """Placement strategies on six queries, alone and under DS2 (CAPSys, sections 3.2 and 6)."""

    runs: int = parameter(10, "runs per strategy, with different seeds")
    odrp_timeout_s: float = parameter(60.0, "time the integer programme gets per configuration")
    profiles: str = parameter("", "folder with the published profiles (q1.json, ...), for table 'profiles'")
    pictures: str = parameter("", "folder for box plots and timelines; none are drawn without")

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ValueError(f"runs must be at least 1, got {self.runs}")
        if not self.odrp_timeout_s > 0:
            raise ValueError(f"odrp_timeout_s must be above 0, got {self.odrp_timeout_s}")

    def tables(self) -> tuple[str, ...]:
        return tuple(self._parts())

    def run(self, table: str, report: Report) -> Table:
        return self._parts()[table](report)

    def _parts(self) -> Mapping[str, Callable[[Report], Table]]:
        return {
            "figure2": self._all_plans,
            "figure7": self._alone,
            "figure8": self._together,
            "table3": self._against_odrp,
            "table4": self._accuracy,
            "figure9": self._convergence,
            "profiles": lambda report: compare_profiles(self.profiles, STRATEGIES, self.runs, report),
        }

    def _all_plans(self, report: Report) -> Table:
        query, cluster = (
            sliding(),
            r5d_xlarge(4).model_copy(
                update={"workers": tuple(w.model_copy(update={"slots": 4}) for w in r5d_xlarge(4).workers)}
            ),
        )
        rate = query.target_rate(cluster)
        wanted = request(query, cluster, rate, {"source": 1, "sink": 2, "map": 5, "window": 8})
        problem = build(wanted)
        plans, _ = list_plans(problem.arrays, NO_LIMITS, most=200, budget=10**7)
        found = len(plans)
        report(f"{found} plans")
        shares = [measure(query, cluster, rate, problem.placement_of(plan), 0).throughput_share for plan in plans]
        best = must_place(placers.create("caps"), wanted).placement
        chosen = measure(query, cluster, rate, _known(best), 0).throughput_share
        meeting = sum(share >= MET for share in shares)
        return Table(
            name="figure2",
            title="Q1-sliding on 4 workers of 4 slots: every plan there is",
            rows=(
                claim("plans", "80", str(found), found == 80),
                figure("plans that meet the target", 3, meeting),
                figure(
                    "worst plan's throughput over the best's", round(9 / 14, 2), round(min(shares) / max(shares), 2)
                ),
                claim("caps meets the target", "yes", f"{chosen:.1%}", chosen >= MET),
            ),
            notes=SET_UP,
        )

    def _alone(self, report: Report) -> Table:
        rows: list[Row] = []
        boxes: dict[str, dict[str, list[Measured]]] = {}
        for query in six_queries():
            report(query.name)
            boxes[query.name] = self._runs(query)
            rows += _compared(query.name, boxes[query.name])
        blocked = {name: _mean(boxes, name, lambda run: run.backpressure) for name in STRATEGIES}
        late = {name: _mean(boxes, name, lambda run: run.latency_s) for name in STRATEGIES}
        others = (blocked["default"] + blocked["evenly"]) / 2
        waited = (late["default"] + late["evenly"]) / 2
        rows += [
            figure(
                "backpressure saved against the others, mean", 84, round(100 * (1 - blocked["caps"] / others)), unit="%"
            ),
            figure("latency saved against the others, mean", 48, round(100 * (1 - late["caps"] / waited)), unit="%"),
            figure(
                "largest gain in mean throughput over default", 6.0, round(_largest_gain(boxes, "default"), 2), unit="x"
            ),
            figure(
                "largest gain in mean throughput over evenly", 5.5, round(_largest_gain(boxes, "evenly"), 2), unit="x"
            ),
        ]
        self._draw_boxes(boxes, "figure7")
        title = f"six queries alone on 4 workers of 8 slots, {self.runs} runs"
        return Table(name="figure7", title=title, rows=tuple(rows), notes=SET_UP)

    def _runs(self, query: StudiedQuery) -> dict[str, list[Measured]]:
        cluster = m5d_2xlarge(4)
        rate = query.target_rate(cluster)
        wanted = request(query, cluster, rate, query.parallelism(rate))
        return {
            strategy: [
                measure(query, cluster, rate, _known(must_place(_placer(strategy, seed), wanted).placement), seed)
                for seed in range(self.runs)
            ]
            for strategy in STRATEGIES
        }

    def _together(self, report: Report) -> Table:
        queries, cluster = six_queries(), m5d_2xlarge(18)
        rates = {query.name: TENANTS_SHARE * query.target_rate(m5d_2xlarge(4)) for query in queries}
        tenants = Tenants.of(queries, cluster, rates)
        boxes: dict[str, dict[str, list[Measured]]] = {
            query.name: {name: [] for name in STRATEGIES} for query in queries
        }
        globally = must_place(placers.create("caps"), tenants.request)
        for seed in range(self.runs):
            report(f"run {seed + 1} of {self.runs}")
            for strategy in STRATEGIES:
                placement = _known(globally.placement) if strategy == "caps" else tenants.placed_in_turn(strategy, seed)
                found = tenants.measure(placement, seed)
                for query, result in zip(queries, found, strict=True):
                    boxes[query.name][strategy].append(result)
        self._draw_boxes(boxes, "figure8")
        met = {
            strategy: sum(_mean({q.name: boxes[q.name]}, strategy, _throughput) >= MET for q in queries)
            for strategy in STRATEGIES
        }
        rows = [row for query in queries for row in _compared(query.name, boxes[query.name])]
        rows.append(claim("queries at their target with caps", "6", str(met["caps"]), met["caps"] == 6))
        rows += [figure(f"with {name}", paper, met[name]) for name, paper in (("default", 3), ("evenly", 1))]
        rows.append(shown("decision time of caps", None, round(globally.elapsed_s, 3), unit="s"))
        title = f"six queries together on 18 workers of 8 slots ({tenants.request.tasks} tasks), {self.runs} runs"
        return Table(name="figure8", title=title, rows=tuple(rows), notes=SET_UP)

    def _against_odrp(self, report: Report) -> Table:
        query, cluster = inference(), c5d_4xlarge(4)
        rate = 4236.0
        wanted = request(query, cluster, rate, query.parallelism(rate))
        paper = {
            "caps": (4236, 0.005, 27, 0.2),
            "default": (680, 0.90, 14, 1636.0),
            "weighted": (3396, 0.48, 26, 4037.0),
            "latency": (4043, 0.15, 32, 1607.0),
        }
        rows: list[Row] = []
        shares: dict[str, float] = {}
        for name, (throughput, backpressure, slots, decision_s) in paper.items():
            report(name)
            settings = {"objective": name, "joint": True, "timeout_s": self.odrp_timeout_s}
            placer = placers.create("caps") if name == "caps" else placers.create("odrp", settings)
            placed = must_place(placer, wanted)
            placement = _known(placed.placement)
            run = measure(query, cluster, rate, placement, 0)
            shares[name] = run.throughput_share
            label = "caps" if name == "caps" else f"odrp {name}"
            stopped = (
                "" if name == "caps" or "optimal" in placed.reason else "stopped at the time-out, not proven optimal"
            )
            rows += [
                figure(
                    f"{label}: throughput",
                    throughput,
                    round(run.throughput_share * rate),
                    unit="rec/s",
                ),
                figure(f"{label}: backpressure", backpressure, round(run.backpressure, 3), least=0.01),
                figure(f"{label}: slots", slots, sum(placement.parallelism.values())),
                shown(
                    f"{label}: decision time",
                    decision_s,
                    round(placed.elapsed_s, 3),
                    unit="s",
                    note=stopped or "another machine and solver",
                ),
            ]
        only = shares["caps"] >= MET and all(share < MET for name, share in shares.items() if name != "caps")
        ours = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        rows.append(claim("only caps reaches the target", "yes", ours, only))
        notes = (*SET_UP, "The integer programme runs in a modern solver on two cores, the paper's ran in another one.")
        return Table(name="table3", title="Q3-inf against ODRP on 4 workers of 8 slots", rows=tuple(rows), notes=notes)

    def _accuracy(self, report: Report) -> Table:
        query, cluster = inference(), r5d_xlarge(12)
        rows: list[Row] = []
        for strategy in STRATEGIES:
            report(strategy)
            found = [accuracy(query, cluster, RATES, strategy, seed) for seed in range(self.runs)]
            for number, paper in enumerate(PAPER_TABLE_4[strategy]):
                rows.append(_step_row(strategy, number, paper, [steps[number] for steps in found]))
        return Table(
            name="table4",
            title=f"Q3-inf, one DS2 decision per rate change (720, 1440, 2880, 1440, 720 images/s), {self.runs} runs",
            rows=tuple(rows),
            notes=(
                *SET_UP,
                "Twelve workers: the paper does not say how many; our rows count runs, the paper made one.",
            ),
        )

    def _convergence(self, report: Report) -> Table:
        query, cluster, rates = inference(), r5d_xlarge(12), (2400.0, 1200.0, 2400.0, 1200.0)
        rows: list[Row] = []
        decisions: dict[str, float] = {}
        for strategy in STRATEGIES:
            report(strategy)
            found = [convergence(query, cluster, rates, strategy, seed) for seed in range(self.runs)]
            decisions[strategy] = float(np.mean([one.decisions for one in found]))
            phases = [phase for one in found for phase in one.phases]
            surplus = max(phase.slots - phase.slots_needed for phase in phases)
            met = f"{sum(phase.meets_target for phase in phases)} of {len(phases)}"
            good = all(phase.meets_target for phase in phases)
            if strategy == "caps":
                rows.append(claim("caps: phases that end at the target", "all", met, good))
            else:
                rows.append(claim(f"{strategy}: phases that end at the target", "not all", met, not good))
            rows.append(shown(f"{strategy}: decisions, mean", None, round(decisions[strategy], 1)))
            rows.append(figure(f"{strategy}: most surplus slots", 0 if strategy == "caps" else 4, surplus))
            if self.pictures:
                from sluice.lab.reproduce.capsys_pictures import draw_timeline

                draw_timeline(found[0].reports, rates, Path(self.pictures) / f"figure9-{strategy}.html")
        fewest = decisions["caps"] <= min(decisions.values())
        extra = max(decisions.values()) - decisions["caps"]
        rows.append(claim("caps decides least often", "up to 8 fewer", f"{extra:.1f} fewer", fewest and extra > 0))
        return Table(
            name="figure9",
            title=f"Q3-inf under DS2, the load changing every 20 minutes, {self.runs} runs",
            rows=tuple(rows),
            notes=SET_UP,
        )

    def _draw_boxes(self, boxes: Boxes, name: str) -> None:
        if self.pictures:
            from sluice.lab.reproduce.capsys_pictures import draw_boxes

            draw_boxes(boxes, Path(self.pictures) / f"{name}.html")


def _placer(strategy: str, seed: int) -> Placer:
    return placers.create(strategy, {} if strategy == "caps" else {"seed": seed})


def _known(placement: Placement | None) -> Placement:
    assert placement is not None
    return placement


def _compared(query: str, runs: Mapping[str, list[Measured]]) -> list[Row]:
    """caps at the target, the others below it: median, smallest and largest share of the target."""
    shares = {name: [run.throughput_share for run in found] for name, found in runs.items()}
    rows = [claim(f"{query}: caps meets the target", "yes", _box(shares["caps"]), min(shares["caps"]) >= MET)]
    for name in ("default", "evenly"):
        below = bool(np.mean(shares[name]) < np.mean(shares["caps"]) - 0.001)
        rows.append(claim(f"{query}: {name}", "below caps", _box(shares[name]), below))
    return rows


def _box(shares: list[float]) -> str:
    low, middle, high = np.quantile(shares, [0.0, 0.5, 1.0])
    return f"{middle:.0%} ({low:.0%} to {high:.0%})"


def _mean(boxes: Boxes, strategy: str, what: Callable[[Measured], float]) -> float:
    return float(np.mean([what(run) for runs in boxes.values() for run in runs[strategy]]))


def _throughput(run: Measured) -> float:
    return run.throughput_share


def _largest_gain(boxes: Boxes, over: str) -> float:
    return max(
        _mean({query: runs}, "caps", _throughput) / _mean({query: runs}, over, _throughput)
        for query, runs in boxes.items()
    )


def _step_row(strategy: str, number: int, paper: str, found: list[Step]) -> Row:
    """caps must be right in every run; the others, drawn at random, are compared by what most runs do."""
    met = sum(step.meets_target for step in found)
    accurate = sum(step.accurate for step in found)
    ours = f"target {met}/{len(found)}, slots {accurate}/{len(found)} (mean {np.mean([s.slots for s in found]):.1f})"
    most = " ".join("yes" if 2 * count > len(found) else "no" for count in (met, accurate))
    holds = met == accurate == len(found) if strategy == "caps" else most == paper
    note = f"{found[0].slots_needed} slots are needed; the paper shows one draw, this is most of {len(found)}"
    return claim(f"{strategy}, step {number + 1}: target met, slots right", paper, ours, holds, note=note)
