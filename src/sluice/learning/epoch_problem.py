"""What QEScalor knows after a window, and what it has to plan then. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sluice.dataflow.rates import EdgeValues
from sluice.learning.epoch_flow import Outputs
from sluice.learning.epoch_outlook import States, newest_epoch
from sluice.learning.qcesa import SizeOption
from sluice.learning.sampled_sizes import SampledSizes
from sluice.model.recommendation import InstanceMix
from sluice.protocol import Memory


@dataclass(frozen=True, kw_only=True)
class EpochWindow:
    """What is known after a window; `is_new` where it was the first of an epoch."""

    running: dict[str, InstanceMix]
    selectivity: EdgeValues
    outputs: Outputs
    epochs: States
    is_new: bool
    sampled: dict[str, SampledSizes]
    factors: dict[str, float]
    speeds: States

    @property
    def epoch(self) -> int:
        return newest_epoch(self.epochs.values())

    def to_memory(self, before: Memory) -> dict[str, Any]:
        outputs = self.outputs.items()
        return {
            "selectivity": self.selectivity,
            "outputs": {name: {to: state.to_data() for to, state in found.items()} for name, found in outputs},
            "factors": self.factors,
            "sampled": {name: found.to_data() for name, found in self.sampled.items()},
            "speeds": {name: state.to_data() for name, state in self.speeds.items()},
            "mixes": self.running,
            "epochs": {name: state.to_data() for name, state in self.epochs.items()},
            "acted_s": before.get("acted_s"),
            "requested": before.get("requested", {}),
            "plan": before.get("plan"),
        }


@dataclass(frozen=True, kw_only=True)
class EpochProblem:
    """What is to be planned: every operator, or the whole job where they share nodes."""

    loads: dict[str, list[float]]
    """By epochs, the one under way first."""
    options: dict[str, list[SizeOption]]
    running: dict[str, InstanceMix]
    expected: dict[str, InstanceMix]
    """What there will be once all that was requested has come."""
    short: list[str]
    """Who has more to do now than that can carry."""
    refused: list[str]
    """Sizes that were requested and cannot be had."""
