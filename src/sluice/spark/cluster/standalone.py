"""A small standalone cluster on this machine, from the installed pyspark: one master, some workers.

Every worker has a loopback address of its own, as machines have, where the system knows such addresses. A master
that dies is started anew and finds its workers and applications again in its recovery folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sluice.errors import BadInputError
from sluice.spark.cluster.lifecycle import clear_home, start
from sluice.spark.cluster.limits import CpuLimit, limits_for
from sluice.spark.cluster.plan import ClusterPlan, ClusterSize, ClusterState, Daemon
from sluice.spark.cluster.processes import free_port

HOST = "127.0.0.1"


FIRST_WORKER = 11
MOST_WORKERS = 200


def up(home: Path, *, workers: int, slots: int, memory_mb: int = 1024, cpus: float | None = None) -> ClusterState:
    size = ClusterSize(workers=workers, slots=slots, memory_mb=memory_mb, cpus=cpus)
    if workers > MOST_WORKERS:
        raise BadInputError(f"workers must be at most {MOST_WORKERS}, got {workers}")
    clear_home(home)
    shutil.rmtree(home / "recovery", ignore_errors=True)
    return start(home, make_plan(home, size))


def make_plan(home: Path, size: ClusterSize) -> ClusterPlan:
    port, web_port = free_port(), free_port()
    master_url = f"spark://{HOST}:{port}"
    recovery = f"-Dspark.deploy.recoveryDirectory={home.resolve() / 'recovery'}"
    master = ["master.Master", "--host", HOST, "--port", port, "--webui-port", web_port]
    daemons = {"master": _daemon(recovery, master, restart=True)}
    limits: list[CpuLimit] | list[None] = [None] * size.workers
    if size.cpus is not None:
        limits = limits_for(home, size.workers, size.cpus)
    hosts = worker_hosts(size.workers)
    for number, (host, limit) in enumerate(zip(hosts, limits, strict=True)):
        name = f"worker-{number}"
        daemons[name] = worker_daemon(
            master_url,
            host=host,
            slots=size.slots,
            memory_mb=size.memory_mb * size.slots,
            work_dir=home.resolve() / "work" / name,
            options=recovery,
            limit=limit,
        )
    return ClusterPlan(
        kind="standalone",
        size=size,
        master_url=master_url,
        web_url=f"http://{HOST}:{web_port}",
        daemons=daemons,
        mark=recovery,
        worker_hosts={f"worker-{number}": host for number, host in enumerate(hosts)},
        work_folder=str(home.resolve() / "work"),
    )


def worker_hosts(count: int) -> list[str]:
    """127.0.0.11 and so on; one address for all on systems where loopback is only one."""
    hosts = [f"127.0.0.{FIRST_WORKER + number}" for number in range(count)]
    try:
        for host in hosts:
            free_port(host)
    except OSError:
        return [HOST] * count
    return hosts


def worker_daemon(
    master_url: str,
    *,
    host: str,
    slots: int,
    memory_mb: int,
    work_dir: Path,
    options: str = "",
    limit: CpuLimit | None = None,
) -> Daemon:
    """`options` are the JVM's."""
    words = ["worker.Worker", "--host", host, "--port", free_port(host), "--webui-port", free_port(host)]
    words += ["--cores", slots, "--memory", f"{memory_mb}m", "--work-dir", work_dir, master_url]
    return _daemon(options, words, host=host, limit=limit)


def _daemon(
    recovery: str, words: list[object], *, host: str = HOST, restart: bool = False, limit: CpuLimit | None = None
) -> Daemon:
    import pyspark

    spark_home = Path(pyspark.__file__).parent
    kind, *arguments = map(str, words)
    return Daemon(
        command=[str(spark_home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments],
        environment={
            "SPARK_HOME": str(spark_home),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.deploy.recoveryMode=FILESYSTEM {recovery} -XX:+UseSerialGC",
        },
        restart=restart,
        limit=limit,
    )
