"""CAPS, contention-aware placement search (CAPSys, EuroSys 2025, sections 4 and 5.2)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from sluice.placement.answers import answer, as_costs, in_words
from sluice.placement.base import Placed, PlacementRequest, placer
from sluice.placement.problem import DIMENSIONS, Floats, build
from sluice.registry import parameter


@placer("caps")
@dataclass(frozen=True, kw_only=True)
class Caps:
    """Spread cpu, state access and network load over the workers: a plan no other beats in all three.

    Small problems are enumerated, and the answer is proven. Large ones are approached by local search, and the plans
    under the tuned thresholds enumerated as far as the node budget goes: then the answer says what gap is left.
    """

    cpu: float | None = parameter(None, "threshold for the cpu cost, 0 to 1; thresholds left out are tuned")
    io: float | None = parameter(None, "threshold for the state access cost, 0 to 1")
    net: float | None = parameter(None, "threshold for the network cost, 0 to 1")
    first: bool = parameter(False, "take the first plan within the given thresholds instead of the best")
    effort: float = parameter(1.0, "multiplies how many search nodes and exchanges are tried")
    timeout_s: float = parameter(5.0, "return the best plan so far after this time")

    def __post_init__(self) -> None:
        for name in DIMENSIONS:
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} must be between 0 and 1, got {value}")
        for name in ("effort", "timeout_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.first and self.cpu is self.io is self.net is None:
            raise ValueError("first needs a threshold to keep: set cpu, io or net")

    def place(self, request: PlacementRequest) -> Placed:
        # loading the compiled search is no part of searching
        from sluice.placement.hunt import hunt, warm_up
        from sluice.placement.moves import fewest_moves

        warm_up()
        started_s = time.perf_counter()
        problem = build(request)
        if not problem.fits:
            return Placed.no_room(request)
        given = self._given()
        ends_s = started_s + self.timeout_s
        found = hunt(problem, given, first=self.first, effort=self.effort, is_over=lambda: time.perf_counter() > ends_s)
        if found.counts is None:
            closest = (
                f"no plan found within the thresholds {in_words(given)}; the closest costs {in_words(found.costs)}"
            )
            return Placed(
                placement=None,
                thresholds=as_costs(given),
                explored=found.explored,
                elapsed_s=time.perf_counter() - started_s,
                reason=closest,
            )
        counts = found.counts
        if request.present is not None:
            counts = fewest_moves(problem, problem.counts_of(request.present), counts, found.costs)
        proof = "nothing better there" if found.gap == 0 else f"costs can fall by {found.gap:.3f} at most"
        how = f"within the thresholds {in_words(found.limits)}, {proof}"
        return answer(problem, counts, started_s, how, limits=found.limits, explored=found.explored, gap=found.gap)

    def _given(self) -> Floats:
        return np.array([np.inf if (value := getattr(self, name)) is None else value for name in DIMENSIONS])
