"""A pipeline on Spark through the suite of all engines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from sluice import Pipeline, Topic
from sluice.control.engine import Engine
from sluice.spark.pipeline.engine import SparkEngine
from sluice.testing.engine_suite import EngineSuite
from sluice.testing.exactly_once.rescaling import QUICK

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SLOT_RATE = 500.0
RECORDS = 100_000


class Backlog:
    """All records at once, more than the slots can process while the test lasts."""

    def start(self, topics: Mapping[str, Path]) -> None:
        topic = Topic.open(topics["numbers"])
        topic.append(pa.table({"id": np.arange(RECORDS)}, schema=topic.schema), producer="test", batch_id=0)

    def check(self) -> None:
        pass

    def stop(self) -> None:
        pass


def pipeline() -> Pipeline:
    job = Pipeline("contract")
    job.source("numbers", "id BIGINT")
    job.operator("source", lambda numbers: numbers, "numbers", slot_rate=10 * SLOT_RATE)
    job.sink("out", job.operator("work", lambda source: source, "source", slot_rate=SLOT_RATE))
    return job


class TestSparkPipeline(EngineSuite):
    window_s: ClassVar[float] = 3.0
    tolerance_s: ClassVar[float] = 1.0

    @pytest.fixture
    def engine(self, spark, tmp_path) -> Engine:
        return SparkEngine(pipeline(), tmp_path, slots=12, spark=spark, settings=QUICK, feed=Backlog())
