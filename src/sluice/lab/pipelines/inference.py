"""Image inference: decode, resize, classify.

Stresses network and CPU at once: large records, heavy operators, and (the only pipeline here) Python in them. CAPSys
uses photographs and a neural network; here the images are digits of 64 by 64 pixels as PNG files and the classifier
is a small one from scikit-learn, trained when the pipeline is built, so that nothing has to be downloaded.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import flink_like, true_rate
from sluice.lab.pipelines.standard import StandardPipeline, scale_parameter
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

DECODED = "id BIGINT, side INT, pixels BINARY"
RESIZED = "id BIGINT, features ARRAY<DOUBLE>"
CLASSIFIED = "id BIGINT, label BIGINT"
SMALL_SIDE = 8


@pipeline("inference")
@dataclass(frozen=True, kw_only=True)
class Inference(StandardPipeline):
    """Classify images (source, decode, resize, infer, sink)."""

    peak_rate: float = parameter(2_000.0, "images/s at load 1")
    side: int = parameter(64, "on Spark: pixels of an image from left to right, a multiple of 8")
    spark_scale: float = scale_parameter(0.05)

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

    def spark(self) -> SparkJob:
        from sluice.lab.generator.images import IMAGE_SCHEMA, Images

        job = self.builder("inference")
        images = job.pipeline.source("images", IMAGE_SCHEMA, generate=Images(side=self.side))
        decoded = job.add("decode", partial(in_batches, function=decode, schema=DECODED), job.source("source", images))
        resized = job.add("resize", partial(in_batches, function=resize, schema=RESIZED), decoded)
        infer = partial(classify, model=trained())
        labelled = job.add("infer", partial(in_batches, function=infer, schema=CLASSIFIED), resized)
        return SparkJob(pipeline=job.sink(labelled), peak_rates={"images": self.peak_rate * self.spark_scale})


def in_batches(records: DataFrame, *, function: Callable[[pa.RecordBatch], dict[str, Any]], schema: str) -> DataFrame:
    """Apply a function of Arrow batches, the cheapest way into Python."""

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_pydict(function(batch))

    return records.mapInArrow(each, schema)


def decode(images: pa.RecordBatch) -> dict[str, Any]:
    import pyarrow as pa
    from PIL import Image

    pictures = [Image.open(io.BytesIO(file)) for file in images["image"].to_pylist()]
    return {
        "id": images["id"],
        "side": pa.array([picture.width for picture in pictures], pa.int32()),
        "pixels": pa.array([picture.tobytes() for picture in pictures], pa.binary()),
    }


def resize(decoded: pa.RecordBatch) -> dict[str, Any]:
    """Means of blocks, in the scale the classifier knows: eight by eight values from 0 to 16."""
    features = []
    for side, pixels in zip(decoded["side"].to_pylist(), decoded["pixels"].to_pylist(), strict=True):
        block = side // SMALL_SIDE
        square = np.frombuffer(pixels, np.uint8).reshape(SMALL_SIDE, block, SMALL_SIDE, block)
        features.append(square.mean(axis=(1, 3)).ravel() / 16)
    return {"id": decoded["id"], "features": features}


def classify(resized: pa.RecordBatch, *, model: Any) -> dict[str, Any]:
    features = resized["features"].flatten().to_numpy().reshape(-1, SMALL_SIDE * SMALL_SIDE)
    labels = model.predict(features) if len(features) else np.zeros(0, np.int64)
    return {"id": resized["id"], "label": labels}


@cache
def trained() -> Any:
    """A logistic regression on the digits themselves: a fraction of a second, the same every time."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from sluice.lab.generator.images import digits

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(*digits())
