"""`sluice run --engine spark`: what it refuses before Spark starts, and how it ends on SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sluice.cli import main
from sluice.journal.file import read_runs
from sluice.spark.cluster.processes import free_port
from sluice.spark.pipeline.folders import Folders, at_batch_boundary

SLOTS = 4
"""So few that the session of the tests has threads for them."""
PATIENCE_S = 240.0

ON_NODES = ["q1", "--engine", "spark", "--master", "spark://h:1", "--nodes", "example"]

ON_MASTER = ["q1", "--engine", "spark", "--master", "spark://h:1"]

PIPELINE = """
import numpy as np
import pyarrow as pa
from sluice import Pipeline

def numbers(first, count, time_s, seed):
    return pa.table({"id": np.arange(first, first + count)})

counting = Pipeline("counting")
counting.source("numbers", "id BIGINT", generate=numbers)

@counting.operator(output_mode="update")
def digits(numbers):
    return numbers.groupBy((numbers.id % 10).alias("digit")).count()

counting.sink("out", digits)
silent = Pipeline("silent")
"""


@pytest.fixture
def pipeline_file(tmp_path) -> Path:
    path = tmp_path / "jobs.py"
    path.write_text(PIPELINE)
    return path


def refusal(capsys, *arguments: str) -> str:
    """What `sluice run` says when it refuses: one line, exit code 2."""
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["wordcount", "--engine", "flink"], "unknown engine 'flink'; known: sim, spark"),
        (["wordcount", "--engine", "spark", "--resume"], "--resume needs --root"),
        (
            ["wordcount", "--engine", "spark", "--resume", "--root", "nowhere"],
            "unknown checkpoint: no run was saved in",
        ),
        (["wordcount", "--engine", "spark", "--spark-set", "slots=0"], "slots must be at least 1, got 0"),
        (["wordcount", "--engine", "spark", "--spark-set", "rescale=fast"], "rescale"),
        (
            ["wordcount", "--engine", "spark", "--policy", "qescalor", "--set", "prices=example"],
            "policy 'qescalor' recommends instance sizes, which --engine spark applies with --nodes only",
        ),
        (["q1", "--nodes", "example"], "--nodes are for --engine spark with --master spark://HOST:PORT"),
        (["q1", "--engine", "spark", "--nodes", "example"], "--nodes are for --engine spark with --master"),
        (
            ["q1", "--policy", "qescalor", "--set", "prices=example", "--set", "share_nodes=true"],
            "share_nodes=true needs --nodes",
        ),
        (["q1", "--node-start", "x"], "--node-start needs --nodes, the sizes there are; got 'x'"),
        ([*ON_NODES, "--placement", "caps"], "with --nodes an instance is a node: no --placement, got 'caps'"),
        ([*ON_NODES, "--node-type", "huge"], "unknown node type 'huge'; known: large, medium, micro, nano"),
        ([*ON_NODES, "--node-start", "cmd {type}"], "--node-start and --node-stop go together"),
        ([*ON_NODES, "--node-list", "ls"], "--node-list is for nodes of --node-start"),
        ([*ON_NODES, "--most-nodes", "0"], "--most-nodes must be at least 1, got 0"),
        ([*ON_NODES, "--spark-set", "executor_slots=2"], "an executor takes all of its node, got --spark-set executor"),
        (["q1", "--engine", "spark", "--placement", "caps"], "--placement on Spark needs workers: --master spark://"),
        (["q1", "--engine", "spark", "--placement", "best", "--master", "spark://h:1"], "unknown placement strategy"),
        (["q1", "--engine", "spark", "--master", "yarn"], "--master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR"),
        (["q1", "--engine", "spark", "--master", "k8s://h"], "spark://HOST:PORT, or on yarn, got 'k8s://h'"),
        (["q1", "--engine", "spark", "--master", "spark://h"], "spark://HOST:PORT, or on yarn, got 'spark://h'"),
        (["q1", "--engine", "spark", "--root", "{file}"], "--root must be a folder to write in, got"),
        (["q1", "--engine", "spark", "--root", "{file}", "--resume"], "unknown checkpoint: no run was saved in"),
        (
            [*ON_MASTER, "--placement", "caps", "--profile", "{profile}"],
            "the profile has operators other, the",
        ),
        (["q1", "--engine", "spark", "--spark-set", "elastic=true"], "elastic=true needs a --placement"),
        (["q1", "--engine", "spark", "--spark-set", "executors=0"], "executors must be at least 1, got 0"),
        (["q1", "--master", "spark://h:1"], "--master is for --engine spark, got --engine sim"),
        (
            ["q1", "--engine", "spark", "--master", "spark://h:1", "--placement", "caps", "--cluster", "workers=2"],
            "workers",
        ),
        (["nothing.py:p", "--engine", "spark"], "no file 'nothing.py' to load a pipeline from"),
        (["{file}:other", "--engine", "spark"], "'other'; known: counting, silent"),
        (["{file}", "--engine", "spark"], "has 2 pipelines; say which"),
        (["{file}:silent", "--engine", "spark"], "pipeline 'silent' has no operators"),
        (["{file}:counting"], "runs on Spark only; use --engine spark"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, complaint, pipeline_file, capsys):
    profile = pipeline_file.with_name("profile.json")
    profile.write_text(json.dumps({"operators": [{"name": "other", "parallelism": 1}]}))
    named = {"{file}": str(pipeline_file), "{profile}": str(profile)}
    assert complaint in refusal(capsys, *(named.get(one, one.replace("{file}", named["{file}"])) for one in arguments))


def test_a_master_that_does_not_answer_is_one_line_and_exit_code_2(capsys):
    master = f"spark://127.0.0.1:{free_port()}"
    assert refusal(capsys, "q1", "--engine", "spark", "--master", master, "--placement", "evenly") == (
        f"sluice: no master answers at {master!r} ({master.removeprefix('spark://')}: Connection refused); "
        f"is the cluster up?"
    )


def test_a_missing_java_is_one_line_and_exit_code_2(monkeypatch, capsys):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert refusal(capsys, "wordcount", "--engine", "spark") == (
        "sluice: JAVA_HOME is '/nowhere', but there is no bin/java in it; point it to a Java 17 or 21"
    )


@pytest.mark.spark
def test_on_sigterm_it_ends_between_two_batches_and_resumes_later(spark, pipeline_file, tmp_path, capsys):
    root = tmp_path / "work"
    command = ["run", f"{pipeline_file}:counting", "--engine", "spark", "--policy", "static", "--json"]
    command += ["--workload", "constant", "--root", str(root), "--interval", "2", "--pipeline-set", "peak_rate=200"]
    command += ["--out", str(tmp_path / "out"), "--spark-set", f"slots={SLOTS}"]
    commits = root / "checkpoints" / "digits" / "commits"
    with sigterm_when(lambda: commits.exists() and len(list(commits.glob("[0-9]*"))) > 3):
        summary = summary_of(capsys, *command, "--duration", "900")
    assert (summary["lost_records"], summary["duplicated_records"]) == (0, 0)
    assert at_batch_boundary(root / "checkpoints" / "digits")
    assert Folders(root).load() is not None
    assert summary_of(capsys, *command, "--resume", "--duration", "4")["lost_records"] == 0
    earlier, resumed = read_runs(tmp_path / "out")
    assert earlier.end is not None
    assert earlier.reports
    assert resumed.end is not None
    assert resumed.end.records.arrived < 900 * 200


def summary_of(capsys, *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    printed = capsys.readouterr()
    assert ended.value.code == 0, printed.err
    return json.loads(printed.out)


@contextmanager
def sigterm_when(condition: Callable[[], bool]) -> Iterator[None]:
    """This process gets the signal, as if by `kill`: once the condition holds, or when it never does."""
    over = threading.Event()

    def send() -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition() and time.monotonic() < deadline_s and not over.wait(0.1):
            pass
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        over.set()
        sender.join()
