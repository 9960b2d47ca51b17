"""A second application in another queue of YARN, which takes its share of the cluster back from the first."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.spark.cluster import yarn
from sluice.spark.cluster.lifecycle import read_state
from sluice.spark.cluster.processes import end
from sluice.spark.cluster.yarn_conf import QUEUES
from sluice.testing.step_load.executors import active_executors
from sluice.testing.step_load.job import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

HOLD_S = 30.0
"""How long the second application keeps its share."""
OTHER = f"""
import time
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("yarn").config("spark.yarn.queue", {QUEUES[1]!r})
builder.config("spark.executor.instances", "1").config("spark.executor.memory", "512m").getOrCreate()
time.sleep(600)
"""


def lose_share(spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """Returns when the second application has been there for a while and is gone."""
    state = read_state(home)
    assert state is not None, f"no cluster at {home}"
    before = len(active_executors(spark))
    other = subprocess.Popen([sys.executable, "-c", OTHER], env={**os.environ, **yarn.environment(state)})
    try:
        took_s = wait_for(lambda: len(active_executors(spark)) < before, query, "executors that were preempted")
        time.sleep(HOLD_S)
    finally:
        end(other.pid)
        other.wait()
    return took_s + HOLD_S
