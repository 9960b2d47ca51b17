"""What all standard pipelines share: how a small machine stands in for the cluster their rates were measured on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluice.lab.simulator import SimulatedJob
from sluice.registry import parameter
from sluice.spark.pipeline.definition import Dataset, Function, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ON_TIME = ("at", "2 seconds")
"""The watermark of streams in event time: records come in the order of their times, except within a batch."""


def scale_parameter(default: float) -> Any:
    """The field `spark_scale` with another default."""
    return parameter(default, "rates on Spark as a share of the simulator's, to suit two cores")


@dataclass(frozen=True, kw_only=True)
class StandardPipeline(ABC):
    """On Spark all rates are `spark_scale` of the simulator's, and so is the speed of a slot while slots are paced."""

    spark_scale: float = scale_parameter(0.01)
    paced: bool = parameter(True, "on Spark: hold every slot to its share of the simulator's rate")

    def __post_init__(self) -> None:
        if not (math.isfinite(self.spark_scale) and self.spark_scale > 0):
            raise ValueError(f"spark_scale must be above 0, got {self.spark_scale}")

    @abstractmethod
    def simulated(self) -> SimulatedJob:
        """The job whose rates are scaled."""

    def builder(self, name: str) -> JobBuilder:
        """For a pipeline whose operators are as fast as the simulator's, scaled."""
        rates = {
            operator.name: operator.capacity(1) * self.spark_scale if self.paced else None
            for operator in self.simulated().operators
        }
        return JobBuilder(Pipeline(name), rates)


class JobBuilder:
    """Adds operators with their slot rates, under the names they have on the simulator."""

    def __init__(self, pipeline: Pipeline, slot_rates: Mapping[str, float | None]) -> None:
        self.pipeline = pipeline
        self._slot_rates = slot_rates

    def add(self, name: str, function: Function, *inputs: Dataset, **options: Any) -> Dataset:
        return self.pipeline.operator(name, function, *inputs, slot_rate=self._slot_rates[name], **options)

    def source(self, name: str, stream: Dataset) -> Dataset:
        """An operator that only reads: in the thesis sources are scaled like all others."""
        return self.add(name, pass_on, stream)

    def sink(self, dataset: Dataset) -> Pipeline:
        """An operator that only writes, and the topic `out` behind it."""
        self.pipeline.sink("out", self.add("sink", pass_on, dataset))
        return self.pipeline


def pass_on(records: DataFrame) -> DataFrame:
    return records.select("*")
