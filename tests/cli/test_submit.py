"""`sluice submit`: the spark-submit command it makes, what it refuses before a JVM starts, and one real program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.cli import main
from sluice.journal.file import read_journal
from sluice.journal.records import RunHeader
from sluice.protocol import DEFAULT_POLICY
from sluice.spark.attach import run
from sluice.spark.cluster.lifecycle import read_state

PROGRAM = """
import sys, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("unchanged").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
query = rows.writeStream.format("noop").queryName("rows").trigger(processingTime="1 second").start()
deadline = time.monotonic() + 300
while (query.lastProgress or {"batchId": 0})["batchId"] < 5 and time.monotonic() < deadline:
    time.sleep(0.2)
query.stop()
print("arguments:", sys.argv[1:])
"""


@pytest.fixture
def sluice(capsys, monkeypatch, tmp_path):
    """Run a command where there is a job.py and a Spark; its exit code, output and message."""
    (tmp_path / "spark" / "bin").mkdir(parents=True)
    (tmp_path / "spark" / "bin" / "spark-submit").touch()
    (tmp_path / "job.py").write_text("")
    (tmp_path / "job.jar").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_HOME", "spark")
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["submit", *arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out.strip(), err.strip()

    return call


def test_settings_go_into_the_configuration_and_other_options_to_spark_submit(sluice):
    code, out, _ = sluice(
        *("--policy", "ds2", "--set", "least_drop=1", "--max-executors", "8", "--dry-run", "--interval", "5s"),
        *("--master", "spark://a:1", "--conf", "spark.x=y", "--packages", "g:a:1", "--print"),
        *("--", "job.py", "--max-executors", "3", "--", "last"),
    )
    assert code == 0
    assert out == (
        "spark/bin/spark-submit --master spark://a:1 --conf spark.x=y --packages g:a:1"
        " --conf spark.sluice.policy=ds2 --conf spark.sluice.maxExecutors=8 --conf spark.sluice.interval=5s"
        " --conf spark.sluice.dryRun=true --conf spark.sluice.policy.least_drop=1"
        f" {run.__file__} job.py --max-executors 3 -- last"
    )


@pytest.mark.parametrize("mode", ["--deploy-mode cluster", "--conf spark.submit.deployMode=cluster"])
@pytest.mark.parametrize(
    ("options", "files"), [((), "jobs/job.py"), (("--files", "a.txt"), "a.txt,jobs/job.py")], ids=["alone", "others"]
)
def test_in_cluster_deploy_mode_the_program_travels_to_the_driver(sluice, tmp_path, mode, options, files):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.py").touch()
    _, out, _ = sluice(*mode.split(), *options, "--print", "--", "jobs/job.py", "1")
    assert out.endswith(f" --files {files} {run.__file__} job.py 1")


def test_the_process_becomes_spark_submit_with_the_python_that_has_sluice(sluice, monkeypatch):
    became = []
    monkeypatch.setattr(os, "execve", lambda path, words, variables: became.append((path, words, variables)))
    sluice("--", "job.py")
    ((path, words, variables),) = became
    assert (path, words) == ("spark/bin/spark-submit", ["spark/bin/spark-submit", run.__file__, "job.py"])
    assert variables["PYSPARK_DRIVER_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "python3.9")
    sluice("--", "job.py")
    assert "PYSPARK_DRIVER_PYTHON" not in became[1][2]


def test_where_names_the_file_for_spark_submit(sluice):
    assert sluice("--where") == (0, run.__file__, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("job.py",), "which program? give it after --, as in: sluice submit --max-executors 8 -- job.py"),
        (("--",), "which program? give it after --, as in: sluice submit --max-executors 8 -- job.py"),
        (("--", "no.py"), "there is no program 'no.py'; it must be a Python file of this machine"),
        (("--", "job.jar"), "the program must be a Python file, got 'job.jar'; attach is for PySpark"),
        (("--max-executors", "many", "--", "job.py"), "--max-executors must be a whole number, at least 1, got 'many'"),
        (
            ("--min-executors", "4", "--max-executors", "2", "--", "job.py"),
            "--max-executors must be at least --min-executors (4), got 2",
        ),
        (("--policy", "dss", "--", "job.py"), "unknown policy 'dss'; known: big-ds2"),
        (("--policy", "random-search", "--", "job.py"), "policy 'random-search' is not for attach: it tries"),
        (("--policy", "ds2", "--set", "q=1", "--", "job.py"), "policy 'ds2' has no parameter 'q'; it has: activation"),
        (("--conf", "spark.sluice.idle=never", "--", "job.py"), "spark.sluice.idle must be a duration such as 30s"),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_starts(sluice, arguments, said):
    code, out, err = sluice(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"sluice: {said}")


def test_a_spark_home_without_spark_is_named(sluice, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    assert sluice("--", "job.py")[2] == "sluice: SPARK_HOME is '/nowhere', but there is no bin/spark-submit in it"


@pytest.mark.spark
@pytest.mark.slow
def test_an_unchanged_program_is_scaled(cluster: Path, tmp_path: Path) -> None:
    state = read_state(cluster)
    assert state is not None
    (tmp_path / "job.py").write_text(PROGRAM)
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("sluice")),
            *("submit", "--max-executors", "2", "--interval", "1s", "--journal", "journal.jsonl"),
            *("--master", state.master_url, "--conf", "spark.executor.cores=1", "--conf", "spark.cores.max=2"),
            *("--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false"),
            *("--", "job.py", "first", "--second"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert "arguments: ['first', '--second']" in done.stdout
    records = list(read_journal(tmp_path / "journal.jsonl"))
    header = records[0]
    assert isinstance(header, RunHeader)
    assert (header.pipeline.name, header.policy.name, header.settings["max_executors"]) == (
        "unchanged",
        DEFAULT_POLICY,
        2,
    )
    assert len(records) > 3
