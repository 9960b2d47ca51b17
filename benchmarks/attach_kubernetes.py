"""The step load of attach_faults on a real Kubernetes API, 1 -> 3 -> 1 executors, with what Kubernetes does to pods.

python -m benchmarks.attach_kubernetes [--short] [--only RUN]

Every run has its own etcd, API server, scheduler and controllers; executor pods run as processes. Records are counted
against what was written; times are from the load step or the fault until three executors have finished tasks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.step_load_runs import print_result, run_program
from sluice.errors import BadInputError
from sluice.spark.cluster.kinds import job_environment
from sluice.spark.cluster.kubernetes.access import NAMESPACE, RIGHTS, SERVICE_ACCOUNT
from sluice.spark.cluster.kubernetes.admin import admin_of
from sluice.spark.cluster.plan import ClusterState
from sluice.testing.step_load.job import local_cluster

RUNS: dict[str, list[str]] = {
    "decommission": [],
    "kill": ["not-draining"],
    "executor killed": ["executor"],
    "pod evicted": ["eviction"],
    "pod evicted, no decommissioning": ["eviction", "not-draining"],
    "no capacity": ["no-capacity", "fulfil_within=15"],
    "node lost": ["node"],
    "API server killed": ["master"],
    "API server away for a minute": ["api-away"],
}
FORBIDDEN = "RBAC forbids"
SHORT = "pod evicted"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help=f"only the run {SHORT!r}")
    parser.add_argument("--only", action="append", choices=[*RUNS, FORBIDDEN], help="this run; may be repeated")
    arguments = parser.parse_args()
    bad = 0
    for name in arguments.only or ([SHORT] if arguments.short else [*RUNS, FORBIDDEN]):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            home, root = Path(folder) / "cluster", Path(folder) / "job"
            root.mkdir()
            with local_cluster(home, kind="kubernetes") as cluster:
                if name == FORBIDDEN:
                    bad += not forbids(cluster)
                else:
                    bad += not print_result(name, run_program(root, home, ["executors=3", *RUNS[name]]))
    sys.exit(1 if bad else 0)


def forbids(cluster: ClusterState) -> bool:
    """Whether `attach` says in one line what the service account may not do."""
    import os

    import sluice
    from sluice.testing.step_load.steps import plain_session

    # a driver that may not create pods is ended by Spark itself; one that may not delete them could only grow
    pods, *others = RIGHTS
    watching = [{**pods, "verbs": ["create", "get", "list", "patch", "watch"]}, *others]
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles/{SERVICE_ACCOUNT}"
    admin_of(cluster).patch(role, {"rules": watching})
    os.environ.update(job_environment(cluster))
    spark = plain_session(cluster.master_url, {})
    try:
        sluice.attach(spark, max_executors=3)
    except BadInputError as error:
        print(f"{FORBIDDEN}: {error}", flush=True)
        return "\n" not in str(error)
    finally:
        spark.stop()
    print(f"{FORBIDDEN}: attach did not notice", flush=True)
    return False


if __name__ == "__main__":
    main()
