"""Private calls about checkpoints: their state, and the files they are in; see `sluice.spark.internals`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.spark.internals import context_of, jvm_of, needs
from sluice.spark.internals.placed import compile_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def repartition_state(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Rewrite the state of a stopped query, whose last batch is committed, into another number of partitions.

    Seen on Spark 4.3.0. Versions 3.5 to 4.1 do not have it.
    """
    with needs(spark, "checkpoint manager that repartitions state"):
        repartition: Any = spark._streamingCheckpointManager.repartition
    repartition(checkpoint, partitions)


def replace_local_files(spark: SparkSession, class_name: str, source: Path, folder: Path) -> None:
    """Put a Hadoop file system of ours, compiled into a jar in `folder`, in the place of the one for local files.

    Does nothing if it is there already. Seen on Spark 4.3.0.
    """
    context = context_of(spark)
    with needs(spark, "Janino compiler or Hadoop file system"):
        jvm = jvm_of(spark)
        file_systems = jvm.org.apache.hadoop.fs.FileSystem
        configuration = jvm.org.apache.hadoop.conf.Configuration(context.hadoopConfiguration())
        local = jvm.java.net.URI.create("file:///")
        present = file_systems.get(local, configuration)
        if present.getClass().getName() == class_name:
            return
        compile_java(spark, [source], class_name, folder)
        configuration.setClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        configuration.set("fs.file.impl", class_name)
        present.close()
        file_systems.get(local, configuration)
