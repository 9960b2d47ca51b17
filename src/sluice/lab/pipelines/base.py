"""What a standard pipeline is, and the registry of them.

A definition knows the query once: its operators and edges, what they cost on the simulator, and the rate at
load 1. Adding one touches one file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from sluice.lab.simulator import SimulatedJob
from sluice.registry import Registry
from sluice.spark.pipeline.job import SparkJob


class PipelineDefinition(Protocol):
    """Implemented by frozen keyword-only dataclasses whose fields are the parameters."""

    @property
    def peak_rate(self) -> float:
        """Records/s that arrive at load 1 at a source with share 1."""
        ...

    def source_shares(self) -> Mapping[str, float]:
        """Source -> its arrival rate as a share of the peak rate."""
        ...

    def simulated(self) -> SimulatedJob:
        """The job as the simulator runs it, with the parallelism it starts with."""
        ...


@runtime_checkable
class RunsOnSpark(Protocol):
    """A definition that has a pipeline of DataFrames too, under the same operator names."""

    def spark(self) -> SparkJob:
        """The job as Spark runs it, with slot rates and peak rates that suit a small machine."""
        ...


pipelines: Registry[PipelineDefinition] = Registry("pipeline", "sluice.lab.pipelines", extra="lab")
pipeline = pipelines.register
