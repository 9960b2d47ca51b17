"""Local files without a process for each: without it, most of a small batch's time on one machine.

Hadoop sets the permissions of every file it creates. Without its native library, which pyspark does not bring, it
starts `chmod` for that, and `readlink` for every rename of Spark's default checkpoint manager: hundreds of processes
for a batch with state. Here Spark's own compiler (Janino, a part of Spark SQL) compiles a file system that asks the
operating system itself, and it takes the place of Hadoop's in the cache that everything in this JVM gets its file
systems from. Executors of a cluster keep Hadoop's. If a step fails, Hadoop's stays here too: slower, as safe.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).with_name("LocalFiles.java")
CLASS_NAME = "sluice.LocalFiles"
LOCAL = "file:///"


def use_quick_local_files(spark: SparkSession) -> None:
    from py4j.protocol import Py4JError

    try:
        _install(spark)
    except Py4JError as error:
        logging.getLogger(__name__).warning("local files stay slow: %s", error)


def _install(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    file_systems = jvm.org.apache.hadoop.fs.FileSystem
    configuration = jvm.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
    local = jvm.java.net.URI.create(LOCAL)
    present = file_systems.get(local, configuration)
    if present.getClass().getName() == CLASS_NAME:
        return
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(present.getClass().getClassLoader())
    compiler.cook(SOURCE.read_text())
    configuration.setClassLoader(compiler.getClassLoader())
    configuration.set("fs.file.impl", CLASS_NAME)
    present.close()
    file_systems.get(local, configuration)
