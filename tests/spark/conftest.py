"""One Spark session for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_THREADS = 16


@pytest.fixture(scope="session")
def java() -> None:
    """For tests that start Spark some other way than by the shared session."""
    from sluice.spark.session import java_home_problem

    if problem := java_home_problem():
        pytest.skip(problem)


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[SparkSession]:
    from sluice.spark.session import open_session

    with open_session("tests", threads=TASK_THREADS, settings={"spark.sql.streaming.pollingDelay": "10ms"}) as session:
        yield session
