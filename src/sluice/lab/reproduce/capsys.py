"""The experiments of CAPSys (EuroSys 2025) again, on the simulator: placement alone, and together with DS2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np

from sluice.lab.reproduce.base import Report, Row, Table, claim, figure, reproduction, shown
from sluice.lab.reproduce.capsys_jobs import (
    OURS_OR_THEIRS,
    StudiedQuery,
    c5d_4xlarge,
    inference,
    m5d_2xlarge,
    r5d_xlarge,
    six_queries,
)
from sluice.lab.reproduce.capsys_profiles import compare_profiles
from sluice.lab.reproduce.capsys_runs import MET, Measured, box, is_below, measure, must_place, request, throughput_rows
from sluice.lab.reproduce.capsys_scaling import Step, accuracy, convergence
from sluice.lab.reproduce.capsys_search import plans_tried, search_times
from sluice.lab.reproduce.capsys_study import FIGURE_3, contention, costs_and_throughput, every_plan
from sluice.lab.reproduce.capsys_tenants import Tenants
from sluice.model import Placement
from sluice.placement import Placer, placers
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
SAVED_7 = {"backpressure": 84, "latency": 48}
"""Section 6.2.1: by how many per cent caps lowers them, mean over the queries."""
GAINS_7 = {"default": 6.0, "evenly": 5.5}
"""Throughput of caps over that of the others on Q5-aggregate, at most."""
WHAT: Mapping[str, Callable[[Measured], float]] = {
    "backpressure": lambda run: run.backpressure,
    "latency": lambda run: run.latency_s,
}
AT_TARGET_8 = {"default": 3, "evenly": 1}
"""Section 6.2.2: queries at their target; evenly's is Q2-join, default's are not named."""
WAIT_ONLY = "ours is the wait before a record is read, the paper's is end to end"
UNNAMED = "the paper does not say which queries"


@reproduction("capsys")
@dataclass(frozen=True, kw_only=True)
class Capsys:
    """Placement strategies on six queries, alone and under DS2 (CAPSys, sections 3.2 and 6)."""

    runs: int = parameter(10, "runs per strategy, with different seeds")
    odrp_effort: float = parameter(60.0, "work of the integer programme per configuration: about a second each")
    profiles: str = parameter("", "folder with the published profiles (q1.json, ...), for table 'profiles'")
    pictures: str = parameter("", "folder for box plots and timelines; none are drawn without")

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ValueError(f"runs must be at least 1, got {self.runs}")
        if not self.odrp_effort > 0:
            raise ValueError(f"odrp_effort must be above 0, got {self.odrp_effort}")

    def tables(self) -> tuple[str, ...]:
        return tuple(self._parts())

    def run(self, table: str, report: Report) -> Table:
        return self._parts()[table](report)

    def _parts(self) -> Mapping[str, Callable[[Report], Table]]:
        return {
            "figure2": every_plan,
            **{name: partial(contention, part) for name, part in FIGURE_3.items()},
            "table2": plans_tried,
            "figure5": costs_and_throughput,
            "figure7": self._alone,
            "figure8": self._together,
            "table3": self._against_odrp,
            "table4": self._accuracy,
            "figure9": self._convergence,
            "figure10": lambda report: search_times(self.profiles, report),
            "profiles": lambda report: compare_profiles(self.profiles, STRATEGIES, self.runs, report),
        }

    def _alone(self, report: Report) -> Table:
        rows: list[Row] = []
        boxes: dict[str, dict[str, list[Measured]]] = {}
        for query in six_queries():
            report(query.name)
            boxes[query.name] = self._runs(query)
            rows += throughput_rows(query.name, boxes[query.name])
        rows += [
            figure(f"{name} saved against the others, mean", paper, _saved(boxes, WHAT[name]), unit="%")
            for name, paper in SAVED_7.items()
        ]
        simple, complex_ = boxes["Q1-sliding"], boxes["Q5-aggregate"]
        mean = _mean({"": simple}, "caps", _throughput) / _mean({"": simple}, "default", _throughput)
        rows.append(figure("Q1-sliding: throughput over default's, mean", 1.18, round(mean, 2), unit="x"))
        blocked = {name: _mean({"": simple}, name, WHAT["backpressure"]) for name in ("caps", "default")}
        # no ratio where caps is never blocked
        lower = round(blocked["default"] / blocked["caps"], 1) if blocked["caps"] else None
        rows.append(figure("Q1-sliding: backpressure of default over caps'", 11.8, lower, unit="x"))
        best = fmean(run.throughput_share for run in complex_["caps"])
        for name, paper in GAINS_7.items():
            gain = best / min(run.throughput_share for run in complex_[name])
            rows.append(figure(f"Q5-aggregate: throughput over {name}'s, at most", paper, round(gain, 2), unit="x"))
        self._draw_boxes(boxes, "figure7")
        title = f"six queries alone on 4 workers of 8 slots, {self.runs} runs"
        return Table(name="figure7", title=title, rows=tuple(rows), notes=(OURS_OR_THEIRS,))

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
        rows = _tenant_rows(boxes)
        rows.append(claim("queries at their target with caps", "6", str(met["caps"]), met["caps"] == 6))
        rows += [figure(f"with {name}", paper, met[name]) for name, paper in AT_TARGET_8.items()]
        rows.append(shown("decision time of caps", None, round(globally.elapsed_s, 3), unit="s"))
        title = f"six queries together on 18 workers of 8 slots ({tenants.request.tasks} tasks), {self.runs} runs"
        return Table(name="figure8", title=title, rows=tuple(rows), notes=(OURS_OR_THEIRS,))

    def _against_odrp(self, report: Report) -> Table:
        query, cluster = inference(), c5d_4xlarge(4)
        rate = 4236.0
        wanted = request(query, cluster, rate, query.parallelism(rate))
        paper = {
            "caps": (4236, 0.005, 0.292, 27, 0.2),
            "default": (680, 0.90, 0.255, 14, 1636.0),
            "weighted": (3396, 0.48, 0.268, 26, 4037.0),
            "latency": (4043, 0.15, 0.157, 32, 1607.0),
        }
        rows: list[Row] = []
        shares: dict[str, float] = {}
        for name, (throughput, backpressure, latency_s, slots, decision_s) in paper.items():
            report(name)
            settings = {"objective": name, "joint": True, "effort": self.odrp_effort}
            placer = placers.create("caps") if name == "caps" else placers.create("odrp", settings)
            placed = must_place(placer, wanted)
            placement = _known(placed.placement)
            run = measure(query, cluster, rate, placement, 0)
            shares[name] = run.throughput_share
            label = "caps" if name == "caps" else f"odrp {name}"
            stopped = "" if name == "caps" or "optimal" in placed.reason else "stopped at its limit, not proven optimal"
            rows += [
                figure(
                    f"{label}: throughput",
                    throughput,
                    round(run.throughput_share * rate),
                    unit="rec/s",
                    fitted=name == "caps",
                ),
                figure(f"{label}: backpressure", backpressure, round(run.backpressure, 3), least=0.01),
                shown(f"{label}: latency", latency_s, round(run.latency_s, 3), unit="s", note=WAIT_ONLY),
                figure(f"{label}: slots", slots, sum(placement.parallelism.values()), fitted=name == "caps"),
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
        notes = (
            OURS_OR_THEIRS,
            "Backpressure within 25 % or one percentage point.",
            "The target is the throughput printed for caps; Q3-inf's costs were chosen with its 27 slots in mind.",
        )
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
                OURS_OR_THEIRS,
                "Twelve workers: the paper does not say how many; our rows count runs, the paper made one.",
            ),
        )

    def _convergence(self, report: Report) -> Table:
        query, cluster, rates = inference(), r5d_xlarge(12), (2400.0, 1200.0, 2400.0, 1200.0)
        rows: list[Row] = []
        decisions: dict[str, list[int]] = {}
        for strategy in STRATEGIES:
            report(strategy)
            found = [convergence(query, cluster, rates, strategy, seed) for seed in range(self.runs)]
            decisions[strategy] = [one.decisions for one in found]
            phases = [phase for one in found for phase in one.phases]
            surplus = max(phase.slots - phase.slots_needed for phase in phases)
            met = f"{sum(phase.meets_target for phase in phases)} of {len(phases)}"
            good = all(phase.meets_target for phase in phases)
            if strategy == "caps":
                rows.append(claim("caps: phases that end at the target", "all", met, good))
            else:
                rows.append(claim(f"{strategy}: phases that end at the target", "not all", met, not good))
            rows.append(shown(f"{strategy}: decisions, mean", None, round(fmean(decisions[strategy]), 1)))
            rows.append(figure(f"{strategy}: most surplus slots", 0 if strategy == "caps" else 4, surplus))
            if self.pictures:
                from sluice.lab.reproduce.capsys_pictures import draw_timeline

                draw_timeline(found[0].reports, rates, Path(self.pictures) / f"figure9-{strategy}.html")
        others = {name: found for name, found in decisions.items() if name != "caps"}
        words = ", ".join(f"{name} {fmean(found):.1f}" for name, found in decisions.items())
        fewest = all(is_below(decisions["caps"], found) for found in others.values())
        rows.append(claim("caps decides least often", "yes", words, fewest))
        more = max(many - few for found in others.values() for many, few in zip(found, decisions["caps"], strict=True))
        rows.append(figure("decisions saved by caps, at most", 8, more))
        return Table(
            name="figure9",
            title=f"Q3-inf under DS2, the load changing every 20 minutes, {self.runs} runs",
            rows=tuple(rows),
            notes=(OURS_OR_THEIRS,),
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


def _tenant_rows(boxes: Boxes) -> list[Row]:
    """Figure 8 by query: caps meets every target; of the others only evenly on Q2-join is named as meeting it."""
    rows: list[Row] = []
    for query, runs in boxes.items():
        shares = {name: [run.throughput_share for run in found] for name, found in runs.items()}
        rows.append(claim(f"{query}: caps meets the target", "yes", box(shares["caps"]), min(shares["caps"]) >= MET))
        rows.append(shown(f"{query}: default", None, box(shares["default"]), note=UNNAMED))
        meets = query == "Q2-join"
        what, paper = f"{query}: evenly meets the target", "yes" if meets else "no"
        rows.append(claim(what, paper, box(shares["evenly"]), fmean(shares["evenly"]) >= MET, said=meets))
    return rows


def _saved(boxes: Boxes, what: Callable[[Measured], float]) -> float | None:
    """Per cent less with caps than with the others, mean over the queries in which the others have any."""
    saved = []
    for query, runs in boxes.items():
        others = fmean(_mean({query: runs}, name, what) for name in ("default", "evenly"))
        if others > 0:
            saved.append(100 * (1 - _mean({query: runs}, "caps", what) / others))
    return round(fmean(saved)) if saved else None


def _mean(boxes: Boxes, strategy: str, what: Callable[[Measured], float]) -> float:
    return float(np.mean([what(run) for runs in boxes.values() for run in runs[strategy]]))


def _throughput(run: Measured) -> float:
    return run.throughput_share


def _step_row(strategy: str, number: int, paper: str, found: list[Step]) -> Row:
    """caps must be right in every run; the others, drawn at random, are compared by what most runs do."""
    met = sum(step.meets_target for step in found)
    accurate = sum(step.accurate for step in found)
    ours = f"target {met}/{len(found)}, slots {accurate}/{len(found)} (mean {np.mean([s.slots for s in found]):.1f})"
    most = " ".join("yes" if 2 * count > len(found) else "no" for count in (met, accurate))
    holds = met == accurate == len(found) if strategy == "caps" else most == paper
    note = f"{found[0].slots_needed} slots are needed; the paper shows one draw, this is most of {len(found)}"
    return claim(f"{strategy}, step {number + 1}: target met, slots right", paper, ours, holds, note=note)
