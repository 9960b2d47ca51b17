"""What all standard pipelines share: how a small machine stands in for the cluster their rates were measured on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluice.lab.simulator import Capacity, SimulatedJob
from sluice.lab.simulator.capacity import read_curve
from sluice.registry import parameter
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.specs import Dataset, Function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ON_TIME = ("at", "2 seconds")
"""The watermark of streams in event time: records come in the order of their times, except within a batch."""


def scale_parameter(default: float) -> Any:
    """The field `spark_scale` with another default."""
    return parameter(default, "rates on Spark as a share of the simulator's, to suit two cores")


@dataclass(frozen=True, kw_only=True)
class StandardPipeline(ABC):
    """On Spark all rates are `spark_scale` of the simulator's, and so is the speed of a slot while slots are paced.

    A slot's speed depends on how many there are, as on the simulator: `capacity(p) / p`. With a curve of its own, every
    operator but the sources has that shape instead.
    """

    spark_scale: float = scale_parameter(0.01)
    paced: bool = parameter(True, "on Spark: hold every slot to its share of the simulator's rate; false: real speed")
    curve: str = parameter(
        "", 'on Spark: JSON file {"capacity": {"1": records/s, ...}} whose shape all operators but the sources get'
    )

    def __post_init__(self) -> None:
        if not (math.isfinite(self.spark_scale) and self.spark_scale > 0):
            raise ValueError(f"spark_scale must be above 0, got {self.spark_scale}")
        if self.curve and not self.paced:
            raise ValueError("a curve needs paced slots, got paced=false with it")

    @abstractmethod
    def simulated(self) -> SimulatedJob:
        """The job whose rates are scaled."""

    def builder(self, name: str) -> JobBuilder:
        """For a pipeline whose operators are as fast as the simulator's, scaled."""
        job = self.simulated()
        shape = read_curve(self.curve) if self.curve else None
        sources = {edge.source for edge in job.edges} - {edge.target for edge in job.edges}
        paces = {
            operator.name: SlotPace(
                operator.capacity(1) * self.spark_scale,
                shape if shape is not None and operator.name not in sources else operator.capacity,
            )
            for operator in job.operators
        }
        return JobBuilder(Pipeline(name), paces if self.paced else {})


@dataclass(frozen=True)
class SlotPace:
    """The rate of a single slot, and the curve that says what is left of it among many."""

    slot_rate: float
    capacity: Capacity

    def efficiency(self, parallelism: int) -> float:
        return self.capacity(parallelism) / (parallelism * self.capacity(1))


class JobBuilder:
    """Adds operators with their paces, under their names on the simulator; without a pace a slot has real speed."""

    def __init__(self, pipeline: Pipeline, paces: Mapping[str, SlotPace]) -> None:
        self.pipeline = pipeline
        self._paces = paces

    def add(self, name: str, function: Function, *inputs: Dataset, **options: Any) -> Dataset:
        if pace := self._paces.get(name):
            options |= {"slot_rate": pace.slot_rate, "slot_efficiency": pace.efficiency}
        return self.pipeline.operator(name, function, *inputs, **options)

    def source(self, name: str, stream: Dataset) -> Dataset:
        """An operator that only reads: in the thesis sources are scaled like all others."""
        return self.add(name, pass_on, stream)

    def sink(self, dataset: Dataset) -> Pipeline:
        """An operator that only writes, and the topic `out` behind it."""
        self.pipeline.sink("out", self.add("sink", pass_on, dataset))
        return self.pipeline


def pass_on(records: DataFrame) -> DataFrame:
    return records.select("*")
