"""A record as a page needs it: a part of its fields, decoded and checked in one step.

A long journal has 100,000 cycles, and reading each into its full type takes four times as long as may be waited for.
What is opened to be read in full goes through `sluice.journal.records`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

Instances = Annotated[int, Meta(ge=0, le=10**12)]
"""Integers without bounds would end as floats that have some."""


class Metrics(Struct, gc=False):
    """One operator in one window."""

    parallelism: Instances
    input_rate: float | None = None
    output_rate: float | None = None
    output_rates: dict[str, float] | None = None
    true_input_rate: float | None = None
    busy: float | None = None
    backpressure: float | None = None
    lag: float | None = None
    lag_rate: float | None = None
    arrival_rate: float | None = None
    latency_s: float | None = None
    state_bytes: float | None = None
    batch_s: float | None = None

    @property
    def capacity(self) -> float | None:
        """What it would read if it never waited."""
        if self.true_input_rate:
            return self.true_input_rate
        return self.input_rate / self.busy if self.input_rate and self.busy else None


class GlanceWindow(Struct, gc=False):
    """What was observed in one window."""

    time_s: float
    interval_s: float
    operators: dict[str, Metrics]
    edges: list[tuple[str, str]] = []
    latency_samples_s: list[float] = []


class Counts(Struct, gc=False):
    """A target, without its placement."""

    parallelism: dict[str, Instances]


class CycleGlance(Struct, gc=False, tag_field="kind", tag="cycle"):
    """One turn of the loop."""

    cycle: Instances
    time_s: float
    observation: GlanceWindow
    action: str
    target: Counts
    proposed: Counts | None = None
    problem: str | None = None


class Chosen(Struct, gc=False):
    """What was picked by name."""

    name: str
    settings: dict[str, Any] = {}

    @property
    def label(self) -> str:
        settings = ",".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}:{settings}" if settings else self.name


class Link(Struct, gc=False, rename={"source": "from", "target": "to"}):
    """An edge of the graph."""

    source: str
    target: str


class Job(Struct, gc=False):
    """The graph as it was written."""

    edges: list[Link] = []
    shared: bool = False


class HeaderGlance(Struct, gc=False, tag_field="kind", tag="run"):
    """What runs from here on."""

    engine: str
    pipeline: Chosen
    policy: Chosen
    interval_s: float
    workload: Chosen | None = None
    guards: dict[str, Any] = {}
    graph: Job | None = None
    duration_s: float | None = None
    slo_s: float | None = None
    dry_run: bool = False
    settings: dict[str, Any] = {}

    @property
    def is_shared(self) -> bool:
        return self.engine == "attach" or bool(self.graph and self.graph.shared)


class OutcomeGlance(Struct, gc=False, tag_field="kind", tag="outcome"):
    """What came of an action."""

    cycle: Instances
    status: str


class InterventionGlance(Struct, gc=False, tag_field="kind", tag="intervention"):
    """What a person did."""

    time_s: float
    control: str


class EndGlance(Struct, gc=False, tag_field="kind", tag="end"):
    """The run is over."""

    time_s: float
    error: str | None = None


class Rates(Struct, gc=False):
    """What the time lines and the samples need of an operator."""

    parallelism: Instances
    input_rate: float | None = None
    true_input_rate: float | None = None
    busy: float | None = None
    arrival_rate: float | None = None


class RatesWindow(Struct, gc=False):
    """What they need of a window."""

    interval_s: float
    operators: dict[str, Rates]
    latency_samples_s: list[float] = []


class CycleRow(Struct, gc=False, tag_field="kind", tag="cycle"):
    """A cycle of the past: a row of the time lines."""

    cycle: Instances
    time_s: float
    observation: RatesWindow
    action: str
    target: Counts
    proposed: Counts | None = None
    problem: str | None = None


Glance = HeaderGlance | CycleRow | OutcomeGlance | InterventionGlance | EndGlance
DECODER: msgspec.json.Decoder[Glance] = msgspec.json.Decoder(Glance)
LAST: msgspec.json.Decoder[CycleGlance] = msgspec.json.Decoder(CycleGlance)
