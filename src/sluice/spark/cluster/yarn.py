"""A small real YARN on this machine: a ResourceManager and some NodeManagers, from Hadoop's own jars.

A slot is a virtual core; the application master of a job takes one. A ResourceManager that dies is started anew and
lets applications run on; a NodeManager that dies is lost after ten seconds, and its containers with it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sluice.errors import BadInputError
from sluice.spark.cluster import yarn_conf
from sluice.spark.cluster.jars import HADOOP
from sluice.spark.cluster.lifecycle import clear_home, start
from sluice.spark.cluster.plan import ClusterPlan, ClusterSize, ClusterState, Daemon
from sluice.spark.cluster.processes import free_port
from sluice.spark.session import java_command

RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
PORTS = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
FOLDERS = ("conf", "logs", "recovery", "staging", "tmp", "work")
JAVA_OPTIONS = [
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
]


def up(home: Path, *, workers: int, slots: int, memory_mb: int = 1024) -> ClusterState:
    size = ClusterSize(workers=workers, slots=slots, memory_mb=memory_mb)
    if workers * slots < 2:
        raise BadInputError(
            f"a YARN cluster needs at least 2 slots, got {workers * slots}: the application master of a job takes one"
        )
    jars = HADOOP.get()
    clear_home(home)
    for name in FOLDERS:
        shutil.rmtree(home / name, ignore_errors=True)
    return start(home, make_plan(home.resolve(), size, jars))


def make_plan(home: Path, size: ClusterSize, jars: Path) -> ClusterPlan:
    """Writes the configuration the daemons and jobs read."""
    ports = {name: free_port() for name in PORTS}
    core, common, settings = yarn_conf.core_site(home), yarn_conf.yarn_site(home, ports), job_settings(home)
    conf_dir = home / "conf" / "job"
    yarn_conf.write_folder(conf_dir, core=core, yarn=common, spark=settings)
    mark = f"log.dir={home / 'logs'}/"
    daemons = {"resourcemanager": _daemon(RESOURCE_MANAGER, conf_dir, jars, f"{mark}resourcemanager", restart=True)}
    for number in range(size.workers):
        name = f"nodemanager-{number}"
        node_conf = home / "conf" / name
        yarn_conf.write_folder(node_conf, core=core, yarn={**common, **yarn_conf.node_site(home, name, size)})
        daemons[name] = _daemon(NODE_MANAGER, node_conf, jars, f"{mark}{name}")
    return ClusterPlan(
        kind="yarn",
        size=size,
        master_url="yarn",
        web_url=f"http://{yarn_conf.HOST}:{ports['webapp.address']}",
        daemons=daemons,
        mark=mark,
        conf_dir=str(conf_dir),
        settings=settings,
    )


def job_settings(home: Path) -> dict[str, str]:
    import pyspark

    return {
        # every node is this machine: nothing needs to be copied to it
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent / 'jars'}/*",
        "spark.yarn.stagingDir": (home / "staging").as_uri(),
        "spark.yarn.am.memory": "256m",
        "spark.pyspark.python": sys.executable,
        "spark.driver.host": yarn_conf.HOST,
        "spark.executor.cores": "1",
    }


def environment(state: ClusterState) -> dict[str, str]:
    """Variables a job needs: with them `spark-submit --master yarn` finds the cluster and its settings."""
    assert state.conf_dir is not None
    return {"HADOOP_CONF_DIR": state.conf_dir, "SPARK_CONF_DIR": state.conf_dir}


def _daemon(main_class: str, conf: Path, jars: Path, log_option: str, *, restart: bool = False) -> Daemon:
    # a container's command begins with $JAVA_HOME/bin/java, whatever is on the PATH
    java = Path(shutil.which(java_command()) or "java").resolve()
    return Daemon(
        command=[str(java), *JAVA_OPTIONS, f"-Dyarn.{log_option}", "-cp", f"{conf}:{jars.resolve()}/*", main_class],
        environment={"JAVA_HOME": str(java.parents[1]), "HADOOP_CONF_DIR": str(conf), "YARN_CONF_DIR": str(conf)},
        restart=restart,
    )
