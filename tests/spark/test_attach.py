"""`sluice.attach` on a real standalone cluster: a step load with an executor killed at its height, and the examples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sluice.cli import main
from sluice.journal.file import read_runs
from sluice.spark.cluster.lifecycle import read_state
from sluice.spark.topic import Topic

pytestmark = [pytest.mark.spark, pytest.mark.slow]

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = [path for path in sorted((REPOSITORY / "examples").glob("*.py")) if not path.stem.startswith("pipeline_")]
"""Programs to attach to; pipelines are tested with their edges."""
MOST_LINES = 60


def run_program(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def test_executors_follow_the_load_and_a_killed_one_is_replaced(
    cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = ("dry-run", "detach", "failure", "watcher")
    run_program("-m", "sluice.testing.step_load.program", tmp_path, cluster, "executors=3", "executor", *checks)
    result: dict[str, Any] = json.loads((tmp_path / "result.json").read_text())
    assert (result["lost"], result["repeated"]) == (0, 0), result
    assert (result["query_failed"], result["attach_failed"]) == (False, None), result
    counts = [count for _, count in result["executors"]]
    assert (max(counts), counts[-1]) == (3, 1), result["executors"]
    with pytest.raises(SystemExit) as ended:
        main(["explain", str(tmp_path / "journal.jsonl")])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert "executors 1 -> " in printed
    assert "ds2: counts " in printed


def test_what_other_sessions_and_batch_jobs_use_is_not_released(cluster: Path, tmp_path: Path) -> None:
    run_program("-m", "sluice.testing.step_load.sessions", tmp_path, cluster)
    result: dict[str, Any] = json.loads((tmp_path / "result.json").read_text())
    assert result["fewest_while_the_other_session_works"] >= 2, result
    assert result["fewest_while_a_batch_job_runs"] >= 2, result
    assert result["failure"] is None
    (run,) = read_runs(tmp_path / "journal.jsonl")
    # both sessions call their query "counts"
    most = max((cycle.observation.operators for cycle in run.cycles), key=len)
    assert len(most) == 2
    assert any(metrics.input_rate for cycle in run.cycles for metrics in cycle.observation.operators.values())
    assert any(cycle.observation.other_busy for cycle in run.cycles)
    idle = [cycle for cycle in run.cycles if cycle.recommendation.reason.startswith("idle")]
    assert idle
    assert not any(cycle.observation.other_busy for cycle in idle)


@pytest.fixture(scope="module")
def examples(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Path, Future[str]]]]:
    """Example -> its folder and what it prints. Two run side by side: most of their time they wait."""
    state = read_state(cluster)
    assert state is not None
    with ThreadPoolExecutor(2) as pool:
        running = {}
        for program in EXAMPLES:
            folder = tmp_path_factory.mktemp(program.stem)
            words = [folder] if "FOLDER" in program.read_text() else []
            running[program.stem] = (folder, pool.submit(run_program, program, state.master_url, *words, 8))
        yield running


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_short_and_runs(program: Path, examples: dict[str, tuple[Path, Future[str]]]) -> None:
    assert len(program.read_text().splitlines()) < MOST_LINES
    folder, printed = examples[program.stem]
    CHECKS[program.stem](folder, printed.result())


def check_rate(_: Path, said: str) -> None:
    assert "Batch: 0" in said


def check_files(folder: Path, _: str) -> None:
    """The last total of every shop, from whichever batch it changed in, against the files themselves."""
    sales = [
        json.loads(line) for file in (folder / "incoming").glob("*.json") for line in file.read_text().splitlines()
    ]
    totals: dict[int, int] = {}
    for batch in sorted((folder / "totals").iterdir(), key=lambda path: int(path.name.partition("=")[2])):
        totals |= {row["shop"]: row["cents"] for row in pq.read_table(batch, partitioning=None).to_pylist()}
    assert sales
    assert totals == {n: sum(sale["cents"] for sale in sales if sale["shop"] == n) for n in range(7)}


def check_topic(folder: Path, _: str) -> None:
    orders, euros = (Topic.open(folder / name).end_offset() for name in ("orders", "euros"))
    assert 0 < orders == euros


CHECKS = {"rate": check_rate, "files": check_files, "topic": check_topic}
