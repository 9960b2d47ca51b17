"""An attached application through the suite of all engines.

Not collected by itself: it needs a Spark context of its own, so `test_contract` runs it in another process.
SLUICE_CLUSTER_HOME names the cluster.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from sluice.control.engine import Engine, wait
from sluice.model import Target
from sluice.spark.attach.engine import AttachedEngine
from sluice.spark.attach.executors import ClusterExecutors
from sluice.spark.cluster.lifecycle import read_state
from sluice.spark.internals.queries import ApplicationQueries
from sluice.testing.engine_suite import EngineSuite
from sluice.testing.step_load.feed import WRITES_PER_S, LineFeed
from sluice.testing.step_load.job import DRAINING, session, start_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS_PER_S = 260.0
"""Of a hundred that an executor can process."""


@pytest.fixture(scope="session")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    cluster = read_state(Path(os.environ["SLUICE_CLUSTER_HOME"]))
    assert cluster is not None
    root = tmp_path_factory.mktemp("application")
    spark = session(cluster.master_url, **{**DRAINING, "spark.cores.max": "2"})
    feed = LineFeed(root / "in", RECORDS_PER_S)
    query = start_query(spark, root, files_per_batch=WRITES_PER_S - 1)
    feed.start()
    yield spark
    feed.stop()
    query.stop()
    spark.stop()


class TestAttachedApplication(EngineSuite):
    busy: ClassVar[str] = "counts"
    initial: ClassVar[dict[str, int]] = {"counts": 1}
    grown: ClassVar[dict[str, int]] = {"counts": 2}
    window_s: ClassVar[float] = 4.0
    tolerance_s: ClassVar[float] = 1.0
    patience_s: ClassVar[float] = 240.0

    @pytest.fixture
    def engine(self, application: SparkSession) -> Engine:
        executors = ClusterExecutors(application, drains=True)
        engine = AttachedEngine(application, executors, ApplicationQueries(application), (1, 2), threading.Event())
        one = Target(parallelism=self.initial)
        engine.maintain()
        while engine.reconcile(one).observed != self.initial:
            wait(engine, 0.5)
        engine.clock.restart()
        return engine
