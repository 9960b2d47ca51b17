"""Executors 1 -> 3 -> 1 with DS2 on every supported version of Spark, decommissioned and killed.

python -m benchmarks.attach_versions [--versions 3.5.9,4.3.0] [--modes decommission,kill] [--python 3.10]

Every version has an environment of its own with sluice's core and that pyspark alone, and runs on a standalone cluster
of that pyspark. Records are counted against what was written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from sluice.errors import SluiceError
from sluice.testing.spark_versions import DEFAULT_CACHE, VERSIONS, make_environment, run_steps

REPOSITORY = Path(__file__).parents[1]
MODES = ("decommission", "kill")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", default=",".join(VERSIONS), help="of pyspark, with commas between them")
    parser.add_argument("--modes", default=",".join(MODES), help="decommission, kill or both")
    parser.add_argument("--python", default=sys.executable, help="a Python or its version; Spark 4.3 needs 3.11")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="where the environments are kept")
    arguments = parser.parse_args()
    bad = 0
    print(
        "| pyspark | Python | mode | records | lost | repeated | s to 3 | s to 1 |\n|---|---|---|---|---|---|---|---|"
    )
    for version in arguments.versions.split(","):
        for mode in arguments.modes.split(","):
            try:
                row = _measure(version, mode, arguments.python, arguments.cache)
            except SluiceError as error:
                row = f"| {version} | | {mode} | {error} | | | | |"
                bad += 1
            print(row, flush=True)
    sys.exit(1 if bad else 0)


def _measure(version: str, mode: str, python: str, cache: Path) -> str:
    environment = make_environment(cache, REPOSITORY, version, python)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        result = run_steps(environment, Path(folder) / "run", mode)
    if result["lost"] or result["repeated"] or result["attach_failed"]:
        raise SluiceError(f"wrong: {result}")
    cells = [result[key] for key in ("spark", "python", "mode", "records", "lost", "repeated", "up_s", "down_s")]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
