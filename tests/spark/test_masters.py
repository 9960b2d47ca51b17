"""How the masters of clusters are written, and what is said of those that no pipeline can run on."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError

from sluice.errors import BadInputError, SluiceError
from sluice.spark.cluster.processes import free_port
from sluice.spark.internals.status import StatusStore
from sluice.spark.masters import addresses, check_answers, check_master
from sluice.spark.placed.cluster import await_executors, check_shared
from sluice.spark.session import no_application


class JavaError(Py4JJavaError):
    """As it arrives in Python, without the gateway that has the rest."""

    def __init__(self, said: str) -> None:
        Exception.__init__(self, said)

    def __str__(self) -> str:
        return str(self.args[0])


@pytest.mark.parametrize(
    ("master", "found"),
    [
        ("spark://h:7077", [("h", 7077)]),
        ("spark://h-1.site:7077,h-2.site:7078", [("h-1.site", 7077), ("h-2.site", 7078)]),
        ("spark://[::1]:7077", [("::1", 7077)]),
        ("yarn", []),
    ],
)
def test_addresses_of_a_master(master, found):
    assert addresses(master) == found


@pytest.mark.parametrize(
    "master",
    [
        *("", "h:7077", "local[2]", "k8s://h:1", "SPARK://h:1"),
        *("spark://", "spark://h", "spark://:7077", "spark://h:x", "spark://h:0", "spark://h:70770"),
        *("spark://h:1/", "spark://h:1,", "spark://h:1,h", "spark://a b:1"),
    ],
)
def test_what_is_no_master_is_named(master):
    with pytest.raises(BadInputError, match="spark://HOST:PORT, or on yarn, got") as refused:
        check_master(master)
    assert repr(master) in str(refused.value)


def test_one_of_several_masters_is_enough():
    dead = f"127.0.0.1:{free_port()}"
    with pytest.raises(BadInputError, match=f"{dead}: Connection refused"):
        check_answers(f"spark://{dead},{dead}")
    with socket.create_server(("127.0.0.1", 0)) as living:
        check_answers(f"spark://{dead},127.0.0.1:{living.getsockname()[1]}")
    check_answers("yarn")


def test_yarn_needs_a_folder_with_its_configuration(monkeypatch, tmp_path):
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(BadInputError, match=f"yarn-site.xml, got HADOOP_CONF_DIR='{tmp_path}'"):
        check_master("yarn")
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    check_master("yarn")


def test_what_answers_but_is_no_master_is_bad_input():
    stopped = JavaError(": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis")
    assert isinstance(no_application(stopped, "spark://h:1"), BadInputError)
    assert "'spark://h:1' did not accept the application" in str(no_application(stopped, "spark://h:1"))
    other = no_application(JavaError(": java.lang.IllegalArgumentException: requirement failed: memory"), None)
    assert str(other) == "Spark did not start: IllegalArgumentException: requirement failed: memory"


def test_workers_without_the_drivers_python_are_bad_input(monkeypatch, tmp_path):
    class Job:
        master = "spark://h:1"
        parallelize = barrier = mapPartitions = lambda self, *_: self  # noqa: N815 # Spark's names

        def collect(self):
            raise JavaError('SparkException: lost\nCaused by: java.io.IOException: Cannot run program "/nope": error=2')

    monkeypatch.setenv("PYSPARK_PYTHON", "/nope")
    with pytest.raises(
        BadInputError, match=r'Cannot run program "/nope": error=2; PYSPARK_PYTHON must .* got \'/nope\''
    ):
        check_shared(SimpleNamespace(sparkContext=Job()), tmp_path, 2)


def test_no_executor_says_what_was_asked_for(monkeypatch):
    monkeypatch.setattr(StatusStore, "executors", lambda _: [])
    monkeypatch.setattr(StatusStore, "__init__", lambda *_: None)
    asked = {"spark.executor.cores": "9"}
    spark = SimpleNamespace(conf=asked, sparkContext=SimpleNamespace(master="spark://h:1"))
    with pytest.raises(SluiceError, match="no executor with 9 cores came within 0 s from spark://h:1"):
        await_executors(spark, 0.0)
