"""The Java of this folder, compiled when a session first needs it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.spark.internals.topics import ship_classes, use_planner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
TOPIC_SOURCE = "sluice.topic.TopicSource"
PLANNER = "sluice.topic.Planner"

_folder: Path | None = None
"""Holds the compiled classes for as long as this process: executors may come late."""
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
        ship_classes(spark, SOURCES, TOPIC_SOURCE, _kept_folder() / "topic.jar")
        use_planner(spark, PLANNER, TopicPlanner())
        _loaded.add(application)


def _kept_folder() -> Path:
    global _folder
    if _folder is None:
        _folder = Path(tempfile.mkdtemp(prefix="sluice-classes-"))
        atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    return _folder
