"""Executors 1 -> 3 -> 1 with DS2: every supported Spark on every cluster manager, decommissioned and killed.

python -m benchmarks.attach_versions [--versions 3.5.9,4.3.0] [--kinds standalone,yarn,kubernetes]
    [--modes decommission,kill] [--within 420] [--again]

Every version has an environment of its own with sluice's core and that pyspark alone, and runs on a cluster of that
pyspark. Records are counted against what was written. Each cell is kept in a file as soon as it is measured, and no
cell is begun after `--within` seconds: the same command again goes on where the last one ended, and prints the whole
table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sluice.errors import SluiceError
from sluice.spark.cluster.kinds import KINDS
from sluice.testing.spark_versions import DEFAULT_CACHE, VERSIONS, make_environment, run_steps
from sluice.testing.step_load.steps import MODES

REPOSITORY = Path(__file__).parents[1]
RESULTS = Path("build") / "attach_versions.jsonl"

Cell = tuple[str, str, str]
"""Version, kind of cluster, mode."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", default=",".join(VERSIONS), help="of pyspark, with commas between them")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of cluster")
    parser.add_argument("--modes", default=",".join(MODES), help="decommission, kill or both")
    parser.add_argument("--within", type=float, default=420.0, help="seconds after which no cell is begun")
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
    known = {} if arguments.again else read_results(arguments.results)
    began_s, bad = time.monotonic(), 0
    for cell in [cell for cell in cells if cell not in known]:
        if time.monotonic() - began_s > arguments.within:
            break
        try:
            result = _measure(cell, arguments.python, arguments.cache)
        except SluiceError as error:
            print(f"{', '.join(cell)}: {error}", file=sys.stderr, flush=True)
            bad += 1
        else:
            _keep(arguments.results, cell, result)
    print_table(read_results(arguments.results))
    sys.exit(1 if bad else 0)


def _measure(cell: Cell, python: str, cache: Path) -> dict[str, Any]:
    version, kind, mode = cell
    environment = make_environment(cache, REPOSITORY, version, python)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        result = run_steps(environment, Path(folder) / "run", mode, kind)
    if result["attach_failed"]:
        raise SluiceError(f"attach failed: {result['attach_failed']}")
    return result


def _keep(file: Path, cell: Cell, result: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a") as results:
        results.write(json.dumps({"cell": cell, **result}) + "\n")


def read_results(file: Path) -> dict[Cell, dict[str, Any]]:
    """The last of every cell."""
    if not file.exists():
        return {}
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return {(version, kind, mode): one for one in found for version, kind, mode in [one["cell"]]}


def print_table(results: dict[Cell, dict[str, Any]]) -> None:
    """A row per version; in a cell the seconds until three work and until one is left, and what went wrong."""
    columns = [(kind, mode) for kind in KINDS for mode in MODES]
    print(f"| pyspark | Python | {' | '.join(f'{kind}, {mode}' for kind, mode in columns)} |")
    print(f"|{'---|' * (len(columns) + 2)}")
    for version in sorted({cell[0] for cell in results}):
        cells = [results.get((version, kind, mode)) for kind, mode in columns]
        python = next(one["python"] for one in cells if one is not None)
        print(f"| {version} | {python} | {' | '.join(map(_text, cells))} |")
    totals = [sum(one[what] for one in results.values()) for what in ("records", "lost", "repeated")]
    print(f"\nof {totals[0]} records {totals[1]} were lost and {totals[2]} repeated")


def _text(result: dict[str, Any] | None) -> str:
    if result is None:
        return "not measured"
    wrong = f", {result['lost']} lost, {result['repeated']} repeated" if result["lost"] or result["repeated"] else ""
    return f"{result['up_s']} / {result['down_s']} s{wrong}"


if __name__ == "__main__":
    main()
