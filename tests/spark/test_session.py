"""Whose session it is: one that runs already is used and left as it was; one of our own leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sluice import Pipeline
from sluice.errors import BadInputError
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.session import (
    JAVA_VARIABLES,
    LATE_OPTIMISER,
    TASK_TRIES,
    local_threads,
    machine_options,
    open_session,
    session_settings,
)
from sluice.testing.exactly_once.rescaling import QUICK, drained, read_output, wait_until
from tests.conftest import TASK_THREADS
from tests.spark.test_runtime import NUMBERS, append, numbers

SHUFFLE = "spark.sql.shuffle.partitions"
POOL = "spark.scheduler.pool"
OWN = """
import logging, os
from sluice.spark.session import open_session

def left() -> tuple:
    levels = [logging.getLogger(f"{kind}QueryContextLogger").level for kind in ("DataFrame", "SQL")]
    ours = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SLUICE_FORKSERVER")
    return {name: os.environ.get(name) for name in ours}, levels

os.environ["PYSPARK_DRIVER_PYTHON"] = "chosen by the user"
before = left()
handle = open_session("own", threads=2)
assert left()[0] == before[0]
assert handle.owned
assert handle.spark.sparkContext.master == "local[2,4]"
assert handle.spark.range(3).rdd.map(lambda row: row.id).sum() == 3
handle.close()
handle.close()
assert left() == before
from pyspark import SparkContext
assert SparkContext._active_spark_context is None
"""


EARLY = """
import os, subprocess, sys
from sluice.spark import early_jvm
from sluice.spark.session import begin_session, open_session

def children() -> list[str]:
    found = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "pid=,comm="], capture_output=True, text=True)
    return [line.split()[0] for line in found.stdout.splitlines() if "java" in line]

begin_session()
begin_session()
early_jvm._early.wait()
[early] = children()
if sys.argv[1] == "nothing":
    sys.exit()
settings = {"other": {"spark.driver.memory": "900m"}, "same": {}}[sys.argv[1]]
with open_session("own", threads=2, settings=settings) as spark:
    assert spark.range(3).count() == 3
    assert spark.sparkContext.master == "local[2,4]"
    [present] = children()
    assert (present == early) == (sys.argv[1] == "same"), (present, early)
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ
"""


@pytest.mark.spark
@pytest.mark.parametrize("session", ["same", "other", "nothing"])
def test_a_jvm_that_was_begun_serves_the_session_it_fits_and_is_ended_otherwise(java, session):
    command = [sys.executable, "-c", EARLY, session]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("cores", "chosen", "options"),
    [
        (2, "", f"-XX:+UseSerialGC {LATE_OPTIMISER}"),
        (2, "-Xlog:gc -XX:+UseParallelGC", LATE_OPTIMISER),
        (2, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        (2, "-XX:+UseG1GC -XX:-TieredCompilation", ""),
        (4, "", ""),
    ],
)
def test_few_cores_get_what_suits_them_unless_something_was_chosen(monkeypatch, cores, chosen, options):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    for variable in JAVA_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", chosen)
    assert machine_options() == options


@pytest.mark.parametrize(
    ("master", "threads"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[ 3 , 4 ]", 3),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_the_threads_of_a_master(master, threads):
    assert local_threads(master) == threads


@pytest.mark.spark
def test_an_own_session_restores_the_environment_and_is_stopped(java):
    done = subprocess.run([sys.executable, "-c", OWN], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.spark
def test_a_pipeline_on_a_session_that_runs_already_leaves_it_as_it_was(spark, tmp_path):
    before = dict(spark.conf.getAll)
    pipeline = Pipeline("guest")
    pipeline.source("numbers", NUMBERS)
    pipeline.operator("keyed", lambda numbers: numbers.groupBy("value").count(), "numbers", output_mode="update")
    pipeline.sink("out", "keyed")
    engine = SparkEngine(pipeline, tmp_path, slots=2, settings=QUICK)
    try:
        engine.start(Target(parallelism={"keyed": 2}))
        append(engine, numbers(0, 70), 0)
        wait_until(lambda: drained(engine), engine, "drained pipeline")
    finally:
        engine.stop()
    assert read_output(tmp_path, "out")["count"].sum() == 70
    assert spark.range(5).count() == 5
    assert dict(spark.conf.getAll) == before


@pytest.mark.spark
@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"threads": 99}, rf"already running has {TASK_THREADS} task threads .* 99 are needed; .*'local\[99,4\]'"),
        ({"threads": 1, "master": "spark://host:7077"}, r"already running on 'local.*', not on 'spark://host:7077'"),
        ({"threads": 1, "settings": {"spark.driver.memory": "9g"}}, r"has spark.driver.memory '1g', '9g' is needed"),
    ],
)
def test_a_session_that_cannot_serve_is_refused_in_one_line(spark, asked, complaint):
    with pytest.raises(BadInputError, match=complaint) as caught:
        open_session("guest", **asked)
    assert "\n" not in str(caught.value)
    assert spark.range(5).count() == 5


@pytest.mark.spark
def test_a_query_starts_with_settings_that_do_not_stay(spark):
    context = spark.sparkContext
    before = (spark.conf.get(SHUFFLE, None), context.getLocalProperty(POOL))
    with session_settings(spark, {SHUFFLE: "3", "spark.sql.ansi.enabled": "false"}, pool="op"):
        assert (spark.conf.get(SHUFFLE), context.getLocalProperty(POOL)) == ("3", "op")
    assert (spark.conf.get(SHUFFLE, None), context.getLocalProperty(POOL)) == before
    with pytest.raises(ZeroDivisionError), session_settings(spark, {SHUFFLE: "4"}, pool="op"):
        _ = 1 / 0
    assert (spark.conf.get(SHUFFLE, None), context.getLocalProperty(POOL)) == before
    assert context.master == f"local[{TASK_THREADS},{TASK_TRIES}]"
