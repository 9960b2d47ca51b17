"""The private calls of Spark that topics need; see `sluice.spark.internals`, whose rules hold here too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.spark.internals import context_of, jvm_of, needs
from sluice.spark.internals.placed import compile_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship_classes(spark: SparkSession, sources: Sequence[Path], probe: str, jar: Path) -> None:
    """Compile classes and make the driver and all executors find them. Seen on Spark 4.3.0."""
    compile_java(spark, sources, probe, jar)
    context = context_of(spark)
    if not context.isLocal():
        context.addJar(str(jar))


def use_planner(spark: SparkSession, class_name: str, planner: object) -> None:
    """Hand a function to the static method `use` of a class that was loaded before. Seen on Spark 4.3.0."""
    from pyspark import java_gateway

    with needs(spark, "callbacks from the JVM"):
        gateway: Any = java_gateway
        gateway.ensure_callback_server_started(spark.sparkContext._gateway)
        found: Any = jvm_of(spark)
        for name in class_name.split("."):
            found = getattr(found, name)
        found.use(planner)
