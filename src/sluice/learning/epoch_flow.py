"""The sources' loads of coming epochs passed along the graph to all operators. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice.dataflow.numbers import LARGEST, known_sum
from sluice.dataflow.rates import EdgeValues
from sluice.learning.forecast import EpochLoad, EpochState
from sluice.model import Observation

Loads = dict[str, list[float] | None]
"""Operator -> records/s in each epoch of the horizon; null where unknown."""
Outputs = dict[str, dict[str, EpochState]]
"""Operator -> successor -> what it puts out there per record it reads, by epochs."""


@dataclass(frozen=True, kw_only=True)
class EpochFlow:
    """`epochs` forecasts what operators put out; one that is off by more than `max_error` is not used."""

    epochs: EpochLoad
    max_error: float
    catch_up_s: float

    def seen(self, observation: Observation, ratios: EdgeValues, saved: Mapping[str, Any]) -> Outputs:
        """After this window, in which operators put out `ratios` of what they read."""
        found: Outputs = {
            name: {to: EpochState.model_validate(data) for to, data in edges.items()} for name, edges in saved.items()
        }
        for name, edges in ratios.items():
            for to, value in edges.items():
                state = found.setdefault(name, {}).get(to)
                found[name][to] = self.epochs.seen(state, observation.time_s, min(value, LARGEST))
        return found

    def loads(
        self,
        observation: Observation,
        selectivity: EdgeValues,
        outputs: Mapping[str, Mapping[str, EpochState]],
        ahead: Mapping[str, list[float]],
    ) -> Loads:
        """`ahead` are the sources' loads, epoch by epoch; a queue inside adds to the first."""
        topology = observation.topology
        epochs = range(len(next(iter(ahead.values()))))
        loads: Loads = {}
        for name in topology.order:
            if topology.is_source(name):
                loads[name] = ahead[name]
                continue
            parts = [
                None
                if (load := loads[up]) is None or (now := selectivity[up].get(name)) is None
                else self._passed(load, now, outputs.get(up, {}).get(name))
                for up in topology.predecessors[name]
            ]
            sums = [known_sum(None if part is None else part[epoch] for part in parts) for epoch in epochs]
            whole = [value for value in sums if value is not None]
            queue = (observation.operators[name].lag or 0.0) / self.catch_up_s
            loads[name] = None if len(whole) < len(sums) else [min(whole[0] + queue, LARGEST), *whole[1:]]
        return loads

    def _passed(self, load: list[float], now: float, state: EpochState | None) -> list[float]:
        """What arrives behind an edge in every epoch: by the ratio forecast where that is trusted, else as now."""
        ratios: tuple[float, ...] = (now,) * len(load)
        if state is not None and self.epochs.trusts(state, self.max_error):
            ratios = tuple(self.epochs.expected(state, len(load)).mean)
        return [min(value * ratio, LARGEST) for value, ratio in zip(load, ratios, strict=True)]
