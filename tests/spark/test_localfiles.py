"""Spark's local files, written without a process for each."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluice.spark import local_files as localfiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def file_system(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    return jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI.create("file:///"), configuration)


def test_everybody_in_this_jvm_gets_the_quick_one_once(spark: SparkSession) -> None:
    first = file_system(spark)
    localfiles.use_quick_local_files(spark)
    assert first.getClass().getName() == localfiles.CLASS_NAME
    assert file_system(spark).equals(first)


def test_permissions_are_set_as_hadoop_does(spark: SparkSession, tmp_path: Path) -> None:
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "file"))
    files = file_system(spark)
    files.create(path).close()
    for mode in (0o640, 0o755, 0o400):
        files.setPermission(path, jvm.org.apache.hadoop.fs.permission.FsPermission(jvm.java.lang.String(f"{mode:o}")))
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_checkpoint_files_need_no_processes(spark: SparkSession, tmp_path: Path) -> None:
    """A process that was waited for leaves its page faults, hundreds at least, with its parent, the JVM."""
    jvm: Any = spark._jvm
    folder = jvm.org.apache.hadoop.fs.Path(str(tmp_path))
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    manager = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(
        folder, configuration
    )
    before = page_faults_of_children(spark)
    for number in range(100):
        manager.createAtomic(jvm.org.apache.hadoop.fs.Path(folder, str(number)), False).close()
    assert len(list(tmp_path.glob("[0-9]*"))) == 100
    # state stores that are closed meanwhile start a process each
    assert page_faults_of_children(spark) - before < 100 * 100


def page_faults_of_children(spark: SparkSession) -> int:
    jvm: Any = spark._jvm
    process = jvm.java.lang.ProcessHandle.current().pid()
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[8])
