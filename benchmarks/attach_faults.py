"""A stateful job under a step load, 1 -> 4 -> 1 executors, with executors, workers and masters killed at its height.

python -m benchmarks.attach_faults [--short]

Every run has its own cluster, a master and two workers as processes of this machine. Records are counted against what
was written; times are from the load step or the kill until four executors have finished tasks. The last run has no
decommissioning, and checks what attaching must not do (sluice/testing/step_load/checks.py).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.step_load_runs import print_result, run_program
from sluice.protocol import DEFAULT_POLICY
from sluice.testing.step_load.checks import CHECKS
from sluice.testing.step_load.job import local_cluster

RUNS: dict[str, list[str]] = {
    "no fault": [],
    "default policy": [f"policy={DEFAULT_POLICY}"],
    "executor killed": ["executor"],
    "worker killed": ["worker"],
    "master killed": ["master"],
    "all three": ["executor", "worker", "master"],
    "checks": [*CHECKS, "not-draining"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="only the run with all faults")
    parser.add_argument("--only", action="append", choices=list(RUNS), help="this run; may be repeated")
    arguments = parser.parse_args()
    bad = 0
    for name in arguments.only or (["all three"] if arguments.short else RUNS):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            home, root = Path(folder) / "cluster", Path(folder) / "job"
            root.mkdir()
            with local_cluster(home):
                bad += not print_result(name, run_program(root, home, RUNS[name]))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
