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
from typing import TYPE_CHECKING

from sluice.spark.internals import MissingCallError
from sluice.spark.internals.checkpoints import replace_local_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).with_name("LocalFiles.java")
CLASS_NAME = "sluice.LocalFiles"


def use_quick_local_files(spark: SparkSession) -> None:
    from py4j.protocol import Py4JError

    # topics need pyarrow, which a cluster's commands do without
    from sluice.spark.topic.classes import classes_folder

    try:
        replace_local_files(spark, CLASS_NAME, SOURCE, classes_folder())
    except (Py4JError, MissingCallError, OSError) as error:
        logging.getLogger(__name__).warning("local files stay slow: %s", error)
