"""What the tests that need Java share: one embedded Spark session, one standalone cluster and one Kafka broker.

`make test` runs two processes for the tests that share the session, half of them each, one for those that share the
cluster, and one for those that start everything themselves: most of their time they wait.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluice.spark.kafka.broker import Login

TASK_THREADS = 16

# a busy machine is slow, not wrong
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

ANSWERS = {"test_queries.py", "test_exactly_once.py"}
"""Half of the tests with the session, by time."""


def _group(item: pytest.Item) -> str:
    fixtures = getattr(item, "fixturenames", ())
    if "cluster" in fixtures:
        return "cluster"
    if "spark" in fixtures or "kafka" in fixtures:
        return "answers" if item.path.name in ANSWERS else "session"
    return "processes"


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(_group(item))


@pytest.fixture(scope="session")
def java() -> Iterator[None]:
    """For tests that start Spark some other way than by the shared session."""
    from sluice.spark.session import java_home_problem
    from sluice.testing.class_archive import java_options

    if problem := java_home_problem():
        pytest.skip(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", java_options())
        yield


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[SparkSession]:
    from sluice.spark.session import open_session

    settings = {"spark.sql.streaming.pollingDelay": "10ms"}
    with open_session("tests", threads=TASK_THREADS, settings=settings, python_sources=True) as session:
        yield session


@pytest.fixture(scope="session")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a cluster of two workers with six slots each; tests leave it as they found it."""
    from sluice.spark.cluster import lifecycle, standalone

    home = tmp_path_factory.mktemp("cluster") / "home"
    standalone.up(home, workers=2, slots=6)
    yield home
    lifecycle.down(home)


@pytest.fixture(scope="session")
def kafka(java: None, kafka_login: Login, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker; tests use topics of their own."""
    from sluice.errors import SluiceError
    from sluice.spark.cluster import lifecycle
    from sluice.spark.kafka import broker

    home = tmp_path_factory.mktemp("kafka") / "home"
    try:
        broker.KAFKA.get()
    except SluiceError as error:
        pytest.skip(str(error))
    yield broker.up(home, kafka_login).master_url
    lifecycle.down(home)


@pytest.fixture(scope="session")
def kafka_login(tmp_path_factory: pytest.TempPathFactory) -> Login:
    """How the broker is reached by those who log in; `certificate.pem` beside its key is what clients trust."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    from sluice.spark.cluster.processes import free_port
    from sluice.spark.kafka.broker import Login

    folder = tmp_path_factory.mktemp("tls")
    key, certificate, both = (folder / name for name in ("key.pem", "certificate.pem", "both.pem"))
    words = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=broker",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    subprocess.run(["openssl", *words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return Login(port=free_port(), user="tester", password=f"secret-{uuid4().hex}", pem=both)
