"""Executors 1 -> 3 -> 1 with DS2: every supported Spark on every cluster manager, decommissioned and killed.

python -m benchmarks.attach_versions [--versions 3.5.9,4.3.0] [--kinds standalone,yarn,kubernetes]
    [--modes decommission,kill] [--within 420] [--jobs 2] [--again]

Every version has an environment of its own with sluice's core and that pyspark alone, and runs on clusters of that
pyspark, one per cluster manager for both modes. Records are counted against what was written. Each cell is kept in a
file as soon as it is measured, and no cell is begun after `--within` seconds: the same command again goes on where the
last one ended, tries what failed once more, and prints the whole table.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sluice.errors import SluiceError
from sluice.spark.cluster.kinds import KINDS
from sluice.spark.cluster.plan import ClusterState
from sluice.testing.spark_versions import DEFAULT_CACHE, VERSIONS, cluster_of, make_environment, run_steps
from sluice.testing.step_load.steps import MODES

REPOSITORY = Path(__file__).parents[1]
RESULTS = Path("build") / "attach_versions.jsonl"

Cell = tuple[str, str, str]
"""Version, kind of cluster, mode."""
Result = dict[str, Any]
"""What the step load saw, or why it could not."""
FAILED = "failed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", default=",".join(VERSIONS), help="of pyspark, with commas between them")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of cluster")
    parser.add_argument("--modes", default=",".join(MODES), help="decommission, kill or both")
    parser.add_argument("--within", type=float, default=420.0, help="seconds after which no cell is begun")
    parser.add_argument("--jobs", type=int, default=2, help="clusters at the same time, each with a job")
    parser.add_argument("--again", action="store_true", help="measure cells that are known already")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of what was measured")
    parser.add_argument("--python", default=sys.executable, help="a Python or its version; Spark 4.3 needs 3.11")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="where the environments are kept")
    arguments = parser.parse_args()
    cells = [
        (version, kind, mode)
        for version in arguments.versions.split(",")
        for kind in arguments.kinds.split(",")
        for mode in arguments.modes.split(",")
    ]
    deadline_s, ended = time.monotonic() + arguments.within, threading.Event()
    # whoever wants an end gets it after the cells that have begun
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    missing = due(cells, {} if arguments.again else read_results(arguments.results))

    def is_over() -> bool:
        return ended.is_set() or time.monotonic() > deadline_s

    def measure(cluster: tuple[str, str]) -> None:
        group = [cell for cell in missing if _cluster_of(cell) == cluster]
        for cell, result in _measure(cluster, group, arguments.python, arguments.cache, is_over):
            print(f"{', '.join(cell)}: {_text(result)}", file=sys.stderr, flush=True)
            _keep(arguments.results, cell, {**result, "at_a_time": arguments.jobs})

    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(measure, dict.fromkeys(map(_cluster_of, missing))))
    results = read_results(arguments.results)
    print_table(results)
    sys.exit(1 if any(FAILED in result for result in results.values()) else 0)


def due(cells: list[Cell], known: dict[Cell, Result]) -> list[Cell]:
    """Those not measured yet, and at the end those that failed: they may fail again."""
    failed = [cell for cell in cells if FAILED in known.get(cell, {})]
    return [*(cell for cell in cells if cell not in known), *failed]


def _cluster_of(cell: Cell) -> tuple[str, str]:
    return cell[0], cell[1]


def _measure(
    cluster: tuple[str, str], cells: list[Cell], python: str, cache: Path, is_over: Callable[[], bool]
) -> Iterator[tuple[Cell, Result]]:
    """Cells of one cluster, until the time is over; one that fails is a result, too."""
    if is_over():
        return
    version, kind = cluster
    left = list(cells)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            environment = make_environment(cache, REPOSITORY, version, python)
            with cluster_of(environment, Path(folder) / "cluster", kind) as state:
                while left and not is_over():
                    cell = left.pop(0)
                    yield cell, _steps(environment, Path(folder) / cell[2], cell[2], state)
        except SluiceError as error:
            for cell in left:
                yield cell, {FAILED: str(error)}


def _steps(environment: Path, root: Path, mode: str, cluster: ClusterState) -> Result:
    began_s = time.monotonic()
    try:
        result = run_steps(environment, root, mode, cluster)
    except SluiceError as error:
        return {FAILED: str(error)}
    if result["attach_failed"]:
        return {FAILED: f"attach failed: {result['attach_failed']}"}
    return {**result, "job_s": round(time.monotonic() - began_s, 1)}


def _keep(file: Path, cell: Cell, result: Result) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a") as results:
        results.write(json.dumps({"cell": cell, **result}) + "\n")


def read_results(file: Path) -> dict[Cell, Result]:
    """The last of every cell."""
    if not file.exists():
        return {}
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return {(version, kind, mode): one for one in found for version, kind, mode in [one["cell"]]}


def print_table(results: dict[Cell, Result]) -> None:
    """A row per version; in a cell the seconds until three work and until one is left, and what went wrong."""
    columns = [(kind, mode) for kind in KINDS for mode in MODES]
    print(f"| pyspark | Python | {' | '.join(f'{kind}, {mode}' for kind, mode in columns)} |")
    print(f"|{'---|' * (len(columns) + 2)}")
    for version in sorted({cell[0] for cell in results}):
        cells = [results.get((version, kind, mode)) for kind, mode in columns]
        python = next((one["python"] for one in cells if one and FAILED not in one), "")
        print(f"| {version} | {python} | {' | '.join(map(_text, cells))} |")
    measured = [one for one in results.values() if FAILED not in one]
    totals = [sum(one[what] for one in measured) for what in ("records", "lost", "repeated")]
    print(f"\n{len(measured)} cells: of {totals[0]} records {totals[1]} were lost and {totals[2]} repeated")


def _text(result: Result | None) -> str:
    if result is None:
        return "not measured"
    if FAILED in result:
        return f"failed: {result[FAILED]}"
    wrong = f", {result['lost']} lost, {result['repeated']} repeated" if result["lost"] or result["repeated"] else ""
    return f"{result['up_s']} / {result['down_s']} s{wrong}"


if __name__ == "__main__":
    main()
