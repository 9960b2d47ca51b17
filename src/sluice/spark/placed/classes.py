"""The Java of this folder, compiled when a session needs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sluice.spark import internals_placed
from sluice.spark.internals_placed import TaskLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
PLACED_SOURCE = "sluice.placed.PlacedSource"
TASK_LOG = "sluice.placed.TaskLog"


def load_classes(spark: SparkSession, folder: Path) -> None:
    """`folder` gets the compiled classes; it must be there for as long as the session."""
    internals_placed.compile_java(spark, SOURCES, PLACED_SOURCE, folder / "placed.jar")


def task_log(spark: SparkSession) -> TaskLog:
    return TaskLog(spark, TASK_LOG)
