"""The Java of this folder, compiled when a session needs it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.spark.internals.placed import TaskLog, compile_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
PLACED_SOURCE = "sluice.placed.PlacedSource"
TASK_LOG = "sluice.placed.TaskLog"


def load_classes(spark: SparkSession, folder: Path) -> None:
    """`folder` gets the compiled classes; it must be there for as long as the session."""
    compile_java(spark, SOURCES, PLACED_SOURCE, folder)


def task_log(spark: SparkSession) -> TaskLog:
    return TaskLog(spark, TASK_LOG)


def placed_stream(spark: SparkSession, source: str, options: Mapping[str, str], places: Path | None) -> DataFrame:
    """A streaming source whose tasks run where the file `places` says; without one they run anywhere."""
    if places is None:
        return spark.readStream.format(source).options(**options).load()
    placed = {"placed.format": source, "placed.plan": str(places)}
    return spark.readStream.format(PLACED_SOURCE).options(**options, **placed).load()
