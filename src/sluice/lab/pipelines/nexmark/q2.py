"""Query 2: the bids on a few auctions.

Stresses filtering: stateless and very selective, the sink has next to nothing to do. One auction in 123 is asked for,
as in the Nexmark suite; the original asks for five auctions by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import STATELESS_BUSY_CEILING, true_rate
from sluice.lab.pipelines.nexmark.base import BidsQuery, calibrated_bids_chain
from sluice.lab.pipelines.standard import scale_parameter
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q2")
@dataclass(frozen=True, kw_only=True)
class Query2(BidsQuery):
    """Nexmark 2: the bids on selected auctions (source, filter, sink)."""

    peak_rate: float = parameter(2_200_000.0, "bids/s at load 1")
    spark_scale: float = scale_parameter(0.01)

    def simulated(self) -> SimulatedJob:
        return calibrated_bids_chain(
            SimulatedOperator(
                name="filter",
                capacity=Linear(true_rate(625_000, STATELESS_BUSY_CEILING)),
                selectivity=1 / 123,
                net_bytes_per_record=1,
            ),
            initial=5,
            busy_ceiling=STATELESS_BUSY_CEILING,
        )

    def spark(self) -> SparkJob:
        return self.spark_job("q2", "filter", on_selected_auctions)


def on_selected_auctions(bids: DataFrame) -> DataFrame:
    return bids.where("auction % 123 = 0").select("auction", "price")
