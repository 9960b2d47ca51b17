"""The Java of this folder, compiled when it is first needed and kept beside the jars of clusters."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.spark.cluster.cache import cache_folder
from sluice.spark.internals.topics import ship_classes, use_planner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
TOPIC_SOURCE = "sluice.topic.TopicSource"
PLANNER = "sluice.topic.Planner"

_loading = threading.Lock()
_loaded: set[str] = set()
"""Applications that have them."""


def load_classes(spark: SparkSession) -> None:
    """Make the driver and the executors find them, and give the driver's the planner of this process."""
    from sluice.spark.topic.planner import TopicPlanner

    with _loading:
        application = str(spark.sparkContext.applicationId)
        if application in _loaded:
            return
        ship_classes(spark, SOURCES, TOPIC_SOURCE, classes_folder())
        use_planner(spark, PLANNER, TopicPlanner())
        _loaded.add(application)


@cache
def classes_folder() -> Path:
    """Where compiled classes are kept; where that cannot be written, a folder that lives as long as this process."""
    kept = cache_folder() / "classes"
    try:
        kept.mkdir(parents=True, exist_ok=True)
        if os.access(kept, os.W_OK):
            return kept
    except OSError:
        pass
    temporary = Path(tempfile.mkdtemp(prefix="sluice-classes-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary
