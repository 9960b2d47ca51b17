"""What `attach` needs beside pyspark: installed size, and CPU time of its import.

python -m benchmarks.attach_footprint [--version 4.3.0] [--runs 5]

The size is that of a fresh environment with sluice's core alone, bytecode included. The import is timed in a process
that has imported pyspark already, as a user's program has; the best of some runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from sluice.testing.spark_versions import DEFAULT_CACHE, VERSIONS, install, make_environment

REPOSITORY = Path(__file__).parents[1]
MOST_MB, MOST_S = 40.0, 0.3
TIMED_IMPORT = """
import time, pyspark.sql
began_s = time.process_time()
import sluice
sluice.attach
print(time.process_time() - began_s)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default=VERSIONS[-1], help="of pyspark")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        python = install(Path(folder) / "core", [str(REPOSITORY)], sys.executable, "--compile-bytecode")
        sizes = sizes_mb(next((python.parents[1] / "lib").glob("python*/site-packages")))
    python = make_environment(DEFAULT_CACHE, REPOSITORY, arguments.version)
    best_s = min(_import_s(python) for _ in range(arguments.runs))
    total_mb = sum(sizes.values())
    largest = ", ".join(f"{name} {size:.1f}" for name, size in sorted(sizes.items(), key=lambda one: -one[1])[:6])
    print(f"installed: {total_mb:.1f} MB (aim {MOST_MB:g}); {largest}")
    print(f"import after pyspark {arguments.version}: {best_s:.2f} s of CPU, best of {arguments.runs} (aim {MOST_S:g})")
    sys.exit(0 if total_mb <= MOST_MB and best_s <= MOST_S else 1)


def sizes_mb(site_packages: Path) -> dict[str, float]:
    """By package, in MB of file content."""
    found: dict[str, float] = {}
    for file in site_packages.rglob("*"):
        if file.is_file():
            package = file.relative_to(site_packages).parts[0]
            found[package] = found.get(package, 0.0) + file.stat().st_size / 1e6
    return found


def _import_s(python: Path) -> float:
    return float(subprocess.run([str(python), "-c", TIMED_IMPORT], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
