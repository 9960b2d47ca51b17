"""What the tests of clusters with a step load share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluice.cli import main
from sluice.spark.cluster.processes import marked_processes
from sluice.testing.step_load import program


def run_cli(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """`sluice cluster WORDS --json`."""
    with pytest.raises(SystemExit, match="0"):
        main(["cluster", *words, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def run_step_load(root: Path, home: Path, options: list[str], spark_options: str) -> None:
    """The step load in a process of its own: it needs a Spark context of its own."""
    root.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", program.__name__, str(root), str(home), *options],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{spark_options} pyspark-shell"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]


def check_result(root: Path, mark: str) -> None:
    """Nothing was lost or repeated, and executors went up, down with the fault, up again, down with the load."""
    result = json.loads((root / "result.json").read_text())
    assert (result["lost"], result["repeated"]) == (0, 0), result
    assert (result["query_failed"], result["attach_failed"]) == (False, None), result
    counts = [count for _, count in result["executors"]]
    assert (max(counts), counts.count(2) > 1, counts[-1]) == (2, True, 1), result["executors"]
    assert marked_processes(mark) == []
