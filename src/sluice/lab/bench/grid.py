"""What a bench runs: every pipeline under every workload and policy, with every seed.

A cell is one run, described by names and plain values only, so that it can be written to a file, hashed, and sent
to another process or machine. Cells of one *case* differ in nothing but the policy.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import Field

from sluice.control.guards import Guards
from sluice.errors import BadInputError
from sluice.journal.records import Choice
from sluice.lab.pipelines import pipelines
from sluice.lab.run import THESIS_GUARDS, RunSpec
from sluice.lab.workloads import duration_s, workloads
from sluice.model.base import Frozen
from sluice.protocol import create_aiming
from sluice.registry import build

CLAIRVOYANT = "clairvoyant"
"""A name a grid takes beside those of the policies: the planner that knows the load, followed step by step."""

Setting = str | int | float | bool | None


class Cell(Frozen):
    """One run of a bench."""

    pipeline: Choice
    workload: Choice
    policy: Choice
    seed: int
    engine: Literal["sim", "spark"] = "sim"
    duration_s: float | None = None
    interval_s: float = 15.0
    speedup: float | None = None
    slo_s: float = 30.0
    guards: dict[str, Setting] = Field(default_factory=lambda: dict(THESIS_GUARDS))
    simulator: dict[str, Setting] = Field(default_factory=dict)
    spark: dict[str, Setting] = Field(default_factory=dict)
    """`SparkSettings` of a run on Spark, e.g. bounded topics."""
    initial_parallelism: int | None = Field(None, ge=1)

    @property
    def key(self) -> str:
        """Names the cell's file: readable, and different for any two cells that differ."""
        text = json.dumps(self.to_data(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        names = (self.pipeline.name, self.workload.name, self.policy.name, str(self.seed))
        return "-".join([*names, digest])

    @property
    def labels(self) -> tuple[str, str, str, int]:
        """Pipeline, workload, policy and seed in words."""
        return self.pipeline.label, self.workload.label, self.policy.label, self.seed

    @property
    def case_key(self) -> str:
        """The cell as JSON with a policy that does nothing: equal for cells that differ in the policy alone."""
        return self.model_copy(update={"policy": Choice(name="static")}).to_json()

    def spec(self) -> RunSpec:
        """The run; raises `BadInputError` for a name or setting nobody knows."""
        foreseen = self.policy.name == CLAIRVOYANT
        driven = workloads.create(self.workload.name, self.workload.settings)
        # on Spark time is dear: the whole pattern goes by within the run
        fitting = duration_s(driven) / self.duration_s if self.engine == "spark" and self.duration_s else 1.0
        return RunSpec(
            pipeline=pipelines.create(self.pipeline.name, self.pipeline.settings),
            policy=create_aiming("static" if foreseen else self.policy.name, self.policy.settings, self.slo_s),
            workload=driven,
            choices={"pipeline": self.pipeline, "policy": self.policy, "workload": self.workload},
            engine=self.engine,
            guards=build(Guards, self.guards, "guards"),
            duration_s=self.duration_s,
            interval_s=self.interval_s,
            speedup=self.speedup or max(1.0, fitting),
            seed=self.seed,
            slo_s=self.slo_s,
            simulator=self.simulator,
            initial_parallelism=self.initial_parallelism,
        )


def grid(
    pipelines: Sequence[Choice],
    workloads: Sequence[Choice],
    policies: Sequence[Choice],
    seeds: Iterable[int],
    **common: Any,
) -> list[Cell]:
    """All combinations, case by case; checked before anything runs."""
    cells = [
        Cell(pipeline=pipeline, workload=workload, policy=policy, seed=seed, **common)
        for pipeline, workload, seed, policy in itertools.product(pipelines, workloads, seeds, policies)
    ]
    if any(cell.engine == "spark" and cell.policy.name == CLAIRVOYANT for cell in cells):
        raise BadInputError("clairvoyant plans for the simulator only: on Spark nobody knows the capacities")
    if not cells:
        raise BadInputError("a bench needs at least one pipeline, workload, policy and seed")
    if len({cell.key for cell in cells}) < len(cells):
        raise BadInputError("the grid names the same run twice; give every pipeline, workload, policy and seed once")
    checked = {(cell.pipeline.label, cell.workload.label, cell.policy.label): cell for cell in cells}
    for cell in checked.values():
        cell.spec()
    return cells
