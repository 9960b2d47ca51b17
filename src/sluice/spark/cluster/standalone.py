"""A small standalone cluster on this machine, from the installed pyspark: one master, some workers.

A master that dies is started anew and finds its workers and applications again in its recovery folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sluice.spark.cluster.lifecycle import clear_home, start
from sluice.spark.cluster.plan import ClusterPlan, ClusterSize, ClusterState, Daemon
from sluice.spark.cluster.processes import free_port

HOST = "127.0.0.1"


def up(home: Path, *, workers: int, slots: int, memory_mb: int = 1024) -> ClusterState:
    size = ClusterSize(workers=workers, slots=slots, memory_mb=memory_mb)
    clear_home(home)
    shutil.rmtree(home / "recovery", ignore_errors=True)
    return start(home, make_plan(home, size))


def make_plan(home: Path, size: ClusterSize) -> ClusterPlan:
    port, web_port = free_port(), free_port()
    master_url = f"spark://{HOST}:{port}"
    recovery = f"-Dspark.deploy.recoveryDirectory={home.resolve() / 'recovery'}"
    master = ["master.Master", "--host", HOST, "--port", port, "--webui-port", web_port]
    daemons = {"master": _daemon(recovery, master, restart=True)}
    for number in range(size.workers):
        name = f"worker-{number}"
        worker = ["worker.Worker", "--host", HOST, "--port", free_port(), "--webui-port", free_port()]
        worker += ["--cores", size.slots, "--memory", f"{size.memory_mb * size.slots}m"]
        worker += ["--work-dir", home.resolve() / "work" / name, master_url]
        daemons[name] = _daemon(recovery, worker)
    return ClusterPlan(
        kind="standalone",
        size=size,
        master_url=master_url,
        web_url=f"http://{HOST}:{web_port}",
        daemons=daemons,
        mark=recovery,
    )


def _daemon(recovery: str, words: list[object], *, restart: bool = False) -> Daemon:
    import pyspark

    spark_home = Path(pyspark.__file__).parent
    kind, *arguments = map(str, words)
    return Daemon(
        command=[str(spark_home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments],
        environment={
            "SPARK_HOME": str(spark_home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.deploy.recoveryMode=FILESYSTEM {recovery} -XX:+UseSerialGC",
        },
        restart=restart,
    )
