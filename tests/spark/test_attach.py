"""`attach` on a real standalone cluster: a master and two workers as processes of this machine, each job a program."""

from __future__ import annotations

import json
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


def run_program(name: str, *arguments: object) -> None:
    program = subprocess.run(
        [sys.executable, "-m", f"tests.spark.{name}", *map(str, arguments)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert program.returncode == 0, program.stderr[-6000:]


def test_dry_run_detaching_and_failing_leave_the_job_as_it_was(cluster: Path, tmp_path: Path) -> None:
    run_program("lifejob", tmp_path, cluster)


def test_a_stateful_job_scales_with_a_step_load_and_loses_nothing_through_kills(cluster: Path, tmp_path: Path) -> None:
    """Last in this file: the cluster has one worker less afterwards."""
    run_program("stepjob", tmp_path, cluster, "executor", "worker", "master")
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["lost"], result["repeated"], result["query_failed"]) == (0, 0, False), result
    assert result["attach_failed"] is None
    counts = [count for _, count in result["executors"]]
    assert counts[-1] == 1
    assert max(counts) >= 4
    told = [one.change for one in explain(read_journal(tmp_path / "journal.jsonl"))]
    assert any(change.startswith("counts 1 -> ") for change in told), told
    assert any(" -> 1 (decommissioning executors: " in change for change in told), told
