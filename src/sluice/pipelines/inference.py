"""Image inference: decode, resize, classify. Large records and heavy operators: network and CPU at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.engines.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import flink_like, true_rate
from sluice.registry import parameter


@pipeline("inference")
@dataclass(frozen=True, kw_only=True)
class Inference:
    """Classify images (source, decode, resize, infer, sink)."""

    peak_rate: float = parameter(2_000.0, "images/s at load 1")

    def source_shares(self) -> Mapping[str, float]:
        return {"source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                SimulatedOperator(name="source", capacity=Linear(true_rate(1_500)), net_bytes_per_record=100_000),
                SimulatedOperator(name="decode", capacity=Linear(true_rate(300)), net_bytes_per_record=150_000),
                SimulatedOperator(name="resize", capacity=Linear(true_rate(600)), net_bytes_per_record=30_000),
                SimulatedOperator(name="infer", capacity=Linear(true_rate(150)), net_bytes_per_record=100),
                SimulatedOperator(name="sink", capacity=Linear(true_rate(10_000))),
            ),
            edges=chain("source", "decode", "resize", "infer", "sink"),
            settings=flink_like(),
            initial_parallelism=dict.fromkeys(("source", "decode", "resize", "infer", "sink"), 4),
        )
