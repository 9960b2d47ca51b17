"""`attach` on a real standalone cluster: a master and two workers as processes of this machine, each job a program.

The short form; `benchmarks/attach_faults.py` also kills workers and masters and prints how long each took.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.control.journal import read_journal
from sluice.engines.spark import standalone
from sluice.engines.spark.session import java_home_problem
from sluice.report.explain import explain
from tests.spark.killing import REPOSITORY

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if problem := java_home_problem():
        pytest.skip(problem)
    home = tmp_path_factory.mktemp("cluster")
    standalone.up(home, workers=2, slots=4)
    yield home
    standalone.down(home)


def run(*command: object) -> str:
    """What the program printed; it must end well."""
    program = subprocess.run(
        [sys.executable, *map(str, command)], cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False
    )
    assert program.returncode == 0, program.stderr[-6000:]
    return program.stdout + program.stderr


def test_a_stateful_job_scales_with_a_step_load_and_loses_nothing(cluster: Path, tmp_path: Path) -> None:
    """An executor is killed at the height of the load; then dry run, detaching and failing must change nothing."""
    run("-m", "tests.spark.stepjob", tmp_path, cluster, "executor", "dry-run", "detach", "failure", "watcher")
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["lost"], result["repeated"], result["query_failed"]) == (0, 0, False), result
    assert result["attach_failed"] is None
    counts = [count for _, count in result["executors"]]
    assert counts[-1] == 1
    assert max(counts) >= 4
    told = [one.change for one in explain(read_journal(tmp_path / "journal.jsonl"))]
    assert any(change.startswith("executors 1 -> ") for change in told), told
    assert any(" -> 1 (decommissioning executors: " in change for change in told), told


@pytest.mark.parametrize(("name", "needs_folder"), [("rate", False), ("files", True), ("topic", True)])
def test_the_examples_run(cluster: Path, tmp_path: Path, name: str, needs_folder: bool) -> None:
    program = REPOSITORY / "examples" / f"{name}.py"
    assert len(program.read_text().splitlines()) < 60
    state = standalone.read_state(cluster)
    assert state is not None
    told = run(program, state.master_url, *([tmp_path / name] if needs_folder else []), 6)
    if name == "topic":
        counts = re.search(r"(\d+) records written, (\d+) converted", told)
        assert counts is not None
        assert counts[1] == counts[2] != "0"
    elif name == "files":
        assert list((tmp_path / name / "totals").glob("batch=*/*.parquet"))
    else:
        assert "event=attached" in told
