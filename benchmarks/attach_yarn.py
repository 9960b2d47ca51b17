"""The step load of attach_faults on a real YARN, 1 -> 3 -> 1 executors, in both deploy modes and with faults.

python -m benchmarks.attach_yarn [--short]

Every run has its own YARN, a ResourceManager and NodeManagers as processes of this machine. Records are counted against
what was written; times are from the load step or the loss until three executors have finished tasks.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

import sluice
from benchmarks.step_load_runs import print_result, run_command, run_program
from sluice.spark.cluster import yarn
from sluice.spark.cluster.plan import ClusterState
from sluice.testing.step_load import program
from sluice.testing.step_load.job import local_cluster


@dataclass(frozen=True)
class YarnRun:
    """Options of the program, where its driver runs, and the cluster it runs on."""

    options: tuple[str, ...] = ()
    in_cluster: bool = False
    slots: int = 4


RUNS: dict[str, YarnRun] = {
    "client, decommission": YarnRun(),
    "client, kill": YarnRun(("not-draining",)),
    "cluster, decommission": YarnRun(in_cluster=True),
    "cluster, kill": YarnRun(("not-draining",), in_cluster=True),
    "executor killed": YarnRun(("executor",)),
    "NodeManager killed": YarnRun(("worker",)),
    "node lost": YarnRun(("node",)),
    "ResourceManager killed": YarnRun(("master",)),
    # two nodes of two slots are full with three executors and their application master
    "preempted": YarnRun(("share", "fulfil_within=15"), slots=2),
}
SHORT = "node lost"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help=f"only the run {SHORT!r}")
    parser.add_argument("--only", action="append", choices=list(RUNS), help="this run; may be repeated")
    arguments = parser.parse_args()
    bad = 0
    for name in arguments.only or ([SHORT] if arguments.short else RUNS):
        bad += not print_result(name, measure(RUNS[name]))
    sys.exit(1 if bad else 0)


def measure(run: YarnRun) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home, root = Path(folder) / "cluster", Path(folder) / "job"
        root.mkdir()
        with local_cluster(home, slots=run.slots, kind="yarn") as cluster:
            words = [str(root), str(home), "executors=3", *run.options]
            if run.in_cluster:
                return run_command(_submit(words), root, _environment(cluster))
            return run_program(root, home, words[2:])


def _submit(words: list[str]) -> list[str]:
    """The driver runs in the container of the application master, which need not have sluice installed."""
    path = ("--conf", f"spark.yarn.appMasterEnv.PYTHONPATH={Path(sluice.__file__).parents[1]}")
    spark_submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    memory = ("--driver-memory", "1g")
    return [str(spark_submit), "--master", "yarn", "--deploy-mode", "cluster", *memory, *path, program.__file__, *words]


def _environment(cluster: ClusterState) -> dict[str, str]:
    return {**os.environ, **yarn.environment(cluster), "SPARK_HOME": str(Path(pyspark.__file__).parent)}


if __name__ == "__main__":
    main()
