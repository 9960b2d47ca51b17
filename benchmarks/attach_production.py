"""A job as in production: three queries, one in another session, one failing and restarted by its owner; bursts.

python -m benchmarks.attach_production

Two executors, a worker and the master of a standalone cluster are killed in a burst. Nothing may be lost or repeated,
and on an executor that was not killed no task may fail but for what it cannot read from one that was: that would be an
executor taken from somebody who works on it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.step_load_runs import run_command
from sluice.testing.step_load import production
from sluice.testing.step_load.job import local_cluster


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home, root = Path(folder) / "cluster", Path(folder) / "job"
        root.mkdir()
        with local_cluster(home, workers=3, slots=4):
            result = run_command([sys.executable, "-m", production.__name__, str(root), str(home)], root)
    for name, value in result.items():
        print(f"{name}: {value}")
    good = not (result["lost"] or result["repeated"] or result["taken_from_tasks"] or result["attach_failed"])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
