"""Sources and sinks that are no topics: whatever Spark reads and writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluice.errors import BadInputError
from sluice.model import Target
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.engine import SparkEngine
from sluice.testing.exactly_once.rescaling import QUICK, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def doubled(numbers: DataFrame) -> DataFrame:
    return numbers.selectExpr("id", "id * 2 AS twice")


def test_an_operator_with_a_sink_of_spark_has_no_readers() -> None:
    pipeline = Pipeline("edges")
    pipeline.source("numbers", "id BIGINT")
    pipeline.operator("doubled", doubled, "numbers")
    pipeline.operator("more", lambda frame: frame, "doubled")
    pipeline.sink("files", "doubled", format="parquet", path="out")
    pipeline.sink("out", "more")
    with pytest.raises(BadInputError, match="'more' cannot read it"):
        pipeline.validate()


def test_a_sink_is_one_thing() -> None:
    pipeline = Pipeline("edges")
    with pytest.raises(BadInputError, match="one of a topic, a format"):
        pipeline.sink("out", "doubled", format="parquet", topic="t")
    with pytest.raises(BadInputError, match="one of a topic, a format"):
        pipeline.sink("out", "doubled", path="out")


def test_every_sink_says_what_it_guarantees() -> None:
    pipeline = Pipeline("edges")
    pipeline.sink("topic", "a")
    pipeline.sink("files", "b", format="parquet", path="out")
    pipeline.sink("console", "c", format="console")
    pipeline.sink("function", "d", lambda batch, batch_id: None)
    said = [spec.guarantee.split(":")[0].split(",")[0] for spec in pipeline.sink_specs.values()]
    assert said == ["exactly once", "exactly once", "at least once", "at least once"]


@pytest.mark.spark
def test_a_source_that_is_no_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline("edges")
    pipeline.source(numbers_of_a_table)
    pipeline.operator("doubled", doubled, "numbers_of_a_table")
    pipeline.sink("out", "doubled")
    with pytest.raises(BadInputError, match="must return a streaming DataFrame"):
        SparkEngine(pipeline, tmp_path, slots=2, spark=spark)


def numbers_of_a_table(spark: SparkSession) -> DataFrame:
    return spark.range(3)


@pytest.mark.spark
def test_from_files_to_files_with_a_stop_and_a_rescale_in_between(spark: SparkSession, tmp_path: Path) -> None:
    arriving, out = tmp_path / "in", tmp_path / "out"
    arriving.mkdir()
    pipeline = Pipeline("edges")

    @pipeline.source
    def numbers(session: SparkSession) -> DataFrame:
        return session.readStream.schema("id BIGINT").json(str(arriving))

    pipeline.operator("doubled", doubled, "numbers")
    pipeline.sink("out", "doubled", format="parquet", path=str(out))

    def found() -> list[int]:
        if not (out / "_spark_metadata").exists():
            return []
        return sorted(row.twice for row in spark.read.schema("id BIGINT, twice BIGINT").parquet(str(out)).collect())

    for life in range(2):
        engine = SparkEngine(pipeline, tmp_path / "root", slots=4, spark=spark, settings=QUICK)
        engine.start(Target(parallelism={"doubled": 1}))
        try:
            lines = [json.dumps({"id": 100 * life + number}) for number in range(50)]
            (arriving / f"{life}.json").write_text("\n".join(lines))
            wait_until(lambda due=50 * (life + 1): len(found()) == due, engine, "output")
            engine.runtime.rescale({"doubled": 3 - life})
        finally:
            count = engine.stop()
        assert (count.lost, count.duplicated) == (0, 0)
    assert found() == [2 * (100 * life + number) for life in range(2) for number in range(50)]
