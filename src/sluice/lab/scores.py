"""What the summary leaves open: how steady a policy was, how soon it settled, how near it came to the best.

All of it is read from the journal; cost and accuracy need the clairvoyant's knowledge of load and capacities too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluice.journal.results import CycleReport
from sluice.model.base import Count, Frozen, NonNegative, Share

if TYPE_CHECKING:
    from sluice.lab.clairvoyant import ClairvoyantPlan, Demand

STEADY_LOAD = 0.02
"""Relative change below which two loads count as the same."""
SHORTEST_STAGE_S = 1200.0
STAGE_END_S = 300.0
QUIET_S = 600.0
"""A policy has settled on a constant load if it leaves the last ten minutes of it alone: twice the cooldown."""


class Stage(Frozen):
    """A stretch of constant load. `converged_s` is the time of the last action after its start, null if not settled."""

    start_s: NonNegative
    end_s: NonNegative
    rate: NonNegative
    converged_s: NonNegative | None
    actions: Count
    end_slots: Count
    end_cpu: Share | None
    """Slots, and their mean CPU use, in its last minutes."""


class Scores(Frozen):
    """One run beyond its summary.

    `oscillations` counts an operator's changes that go against its previous one although the load did not turn.
    `parallelism_accuracy` is the mean of sum(min(p, needed)) / sum(max(p, needed)): 1 if every operator always had just
    what the load of the moment needs. `cost_ratio` is slot-seconds over those of the clairvoyant planner.
    """

    avg_cpu: Share | None
    oscillations: Count
    stages: tuple[Stage, ...]
    parallelism_accuracy: Share | None = None
    over_provisioned_slots: NonNegative | None = None
    under_provisioned_slots: NonNegative | None = None
    planner_avg_slots: NonNegative | None = None
    planner_feasible: bool | None = None
    cost_ratio: NonNegative | None = None

    @property
    def converged_stages(self) -> int:
        return sum(stage.converged_s is not None for stage in self.stages)

    @property
    def converge_s(self) -> float | None:
        """Mean over the stages it settled in; null without one."""
        found = [stage.converged_s for stage in self.stages if stage.converged_s is not None]
        return float(np.mean(found)) if found else None

    @property
    def converge_actions(self) -> float | None:
        found = [stage.actions for stage in self.stages if stage.converged_s is not None]
        return float(np.mean(found)) if found else None


@dataclass(frozen=True)
class Oracle:
    """What a run is measured against."""

    demand: Demand
    plan: ClairvoyantPlan


def score(reports: Sequence[CycleReport], oracle: Oracle | None = None) -> Scores:
    loads = [_load(report) for report in reports]
    basic = Scores(
        avg_cpu=_mean_cpu(reports),
        oscillations=count_oscillations(reports, loads),
        stages=tuple(find_stages(reports, loads)),
    )
    return basic if oracle is None else _against(basic, reports, oracle)


def count_oscillations(reports: Sequence[CycleReport], loads: Sequence[float]) -> int:
    """Changes of an operator that undo its last one, the load having stayed or gone the other way since."""
    last: dict[str, tuple[int, float]] = {}
    found = 0
    for report, load in zip(reports, loads, strict=True):
        for name, (before, after) in _changes(report).items():
            direction = 1 if after > before else -1
            if name in last:
                old_direction, old_load = last[name]
                turned = (load - old_load) * direction > STEADY_LOAD * max(load, old_load)
                found += direction != old_direction and not turned
            last[name] = (direction, load)
    return found


def find_stages(reports: Sequence[CycleReport], loads: Sequence[float]) -> list[Stage]:
    """Constant, non-zero loads that last long enough to settle on, each with how soon the policy did."""
    stages = []
    first = 0
    for number in range(1, len(reports) + 1):
        if number < len(reports) and abs(loads[number] - loads[first]) <= STEADY_LOAD * loads[first]:
            continue
        start_s = reports[first].cycle.time_s - reports[first].cycle.observation.interval_s
        end_s = reports[number - 1].cycle.time_s
        if loads[first] > 0 and end_s - start_s >= SHORTEST_STAGE_S:
            stages.append(_stage(reports[first:number], start_s, end_s, loads[first]))
        first = number
    return stages


def _mean_cpu(reports: Sequence[CycleReport]) -> float | None:
    cpu = [
        (metrics.cpu * metrics.parallelism, metrics.parallelism)
        for report in reports
        for metrics in report.cycle.observation.operators.values()
        if metrics.cpu is not None
    ]
    slots = sum(count for _, count in cpu)
    return min(1.0, sum(used for used, _ in cpu) / slots) if slots else None


def _stage(reports: Sequence[CycleReport], start_s: float, end_s: float, rate: float) -> Stage:
    actions = [report.cycle.time_s for report in reports if _changes(report)]
    settled = not actions or end_s - actions[-1] >= QUIET_S
    took_s = (actions[-1] - start_s if actions else 0.0) if settled else None
    last = [report for report in reports if report.cycle.time_s > end_s - STAGE_END_S]
    return Stage(
        start_s=start_s,
        end_s=end_s,
        rate=rate,
        converged_s=took_s,
        actions=len(actions),
        end_slots=sum(reports[-1].cycle.observation.parallelism.values()),
        end_cpu=_mean_cpu(last),
    )


def _against(basic: Scores, reports: Sequence[CycleReport], oracle: Oracle) -> Scores:
    both = either = over = under = 0.0
    slot_seconds = length_s = 0.0
    needs: dict[float, dict[str, int]] = {}
    for report in reports:
        observation = report.cycle.observation
        interval_s = observation.interval_s
        middle_s = report.cycle.time_s - interval_s / 2
        load = float(oracle.demand.load(np.array([middle_s]))[0])
        needed = needs.setdefault(load, oracle.demand.needed(load))
        for name, had in observation.parallelism.items():
            need = needed[name]
            both += min(had, need) * interval_s
            either += max(had, need) * interval_s
            over += max(0, had - need) * interval_s
            under += max(0, need - had) * interval_s
            slot_seconds += had * interval_s
        length_s += interval_s
    return basic.model_copy(
        update={
            "parallelism_accuracy": both / either,
            "over_provisioned_slots": over / length_s,
            "under_provisioned_slots": under / length_s,
            "planner_avg_slots": oracle.plan.slot_seconds / length_s,
            "planner_feasible": oracle.plan.feasible,
            "cost_ratio": slot_seconds / oracle.plan.slot_seconds,
        }
    )


def _load(report: CycleReport) -> float:
    return sum(metrics.arrival_rate or 0.0 for metrics in report.cycle.observation.operators.values())


def _changes(report: CycleReport) -> Mapping[str, tuple[int, int]]:
    return report.result.changed if report.result.is_action else {}
