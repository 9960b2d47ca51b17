"""The configuration of a small YARN, as dictionaries, and their files. One machine plays all nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from sluice.spark.cluster.plan import ClusterSize

HOST = "127.0.0.1"
ALLOCATION_MB = 128
OVERHEAD_MB = 384
"""What Spark adds to the memory of an executor, at least."""
EXPIRY_MS = 10_000
"""A NodeManager not heard of for so long is lost, and its containers with it; ten minutes otherwise."""
QUEUES = ("default", "urgent")
"""Each may use the whole cluster while the other needs nothing; the other's half is then taken back by preemption."""
LOG4J = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1} %m%n
"""


def core_site(home: Path) -> dict[str, str]:
    return {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(home / "tmp"), "hadoop.service.shutdown.timeout": "15s"}


def yarn_site(home: Path, ports: Mapping[str, int]) -> dict[str, str]:
    """What ResourceManager, NodeManagers and jobs have in common; `ports` are those of the ResourceManager."""
    preemption = "yarn.resourcemanager.monitor.capacity.preemption"
    return {
        "yarn.resourcemanager.hostname": HOST,
        "yarn.resourcemanager.bind-host": HOST,
        **{f"yarn.resourcemanager.{name}": f"{HOST}:{port}" for name, port in ports.items()},
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
        # one that is started anew knows its applications again, and lets them run on
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.store.class": (
            "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
        ),
        "yarn.resourcemanager.fs.state-store.uri": (home / "recovery").as_uri(),
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "2000",
        "yarn.nm.liveness-monitor.expiry-interval-ms": str(EXPIRY_MS),
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "250",
        # nodes of one host are told apart by their ports
        "yarn.scheduler.include-port-in-node-name": "true",
        "yarn.scheduler.minimum-allocation-mb": str(ALLOCATION_MB),
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        f"{preemption}.monitoring_interval": "1000",
        f"{preemption}.max_wait_before_kill": "2000",
        f"{preemption}.total_preemption_per_round": "1.0",
        f"{preemption}.natural_termination_factor": "1.0",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        # what YARN passes on by itself, and how the JVMs of this machine are to run
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG,TZ,JAVA_TOOL_OPTIONS",
    }


def node_site(home: Path, name: str, size: ClusterSize) -> dict[str, str]:
    """What one NodeManager has for itself: folders, resources, and ports that the kernel chooses."""
    return {
        "yarn.nodemanager.hostname": HOST,
        "yarn.nodemanager.bind-host": HOST,
        "yarn.nodemanager.address": f"{HOST}:0",
        "yarn.nodemanager.localizer.address": f"{HOST}:0",
        "yarn.nodemanager.webapp.address": f"{HOST}:0",
        "yarn.nodemanager.local-dirs": str(home / "work" / name),
        "yarn.nodemanager.log-dirs": str(home / "logs" / name),
        "yarn.nodemanager.resource.memory-mb": str(size.slots * container_mb(size.memory_mb)),
        "yarn.nodemanager.resource.cpu-vcores": str(size.slots),
        "yarn.nodemanager.sleep-delay-before-sigkill.ms": "250",
        "yarn.nodemanager.log.retain-seconds": "86400",
    }


def container_mb(memory_mb: int) -> int:
    """What YARN gives a container with an executor of so much memory."""
    whole = memory_mb + max(OVERHEAD_MB, memory_mb // 10)
    return -(-whole // ALLOCATION_MB) * ALLOCATION_MB


def capacity_scheduler() -> dict[str, str]:
    prefix = "yarn.scheduler.capacity"
    settings = {
        f"{prefix}.root.queues": ",".join(QUEUES),
        # without it only memory counts, and an executor may get more cores than there are slots
        f"{prefix}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        # the default of a tenth has no room for one application on a small cluster
        f"{prefix}.maximum-am-resource-percent": "0.5",
        # nodes fill evenly
        f"{prefix}.per-node-heartbeat.multiple-assignments-enabled": "false",
    }
    for queue in QUEUES:
        settings[f"{prefix}.root.{queue}.capacity"] = str(100 // len(QUEUES))
        settings[f"{prefix}.root.{queue}.maximum-capacity"] = "100"
        settings[f"{prefix}.root.{queue}.user-limit-factor"] = str(len(QUEUES))
    return settings


def write_folder(
    folder: Path, *, core: Mapping[str, str], yarn: Mapping[str, str], spark: Mapping[str, str] | None = None
) -> None:
    """A folder for HADOOP_CONF_DIR; with `spark`, for SPARK_CONF_DIR too."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, settings in {"core": core, "yarn": yarn, "capacity": capacity_scheduler()}.items():
        file = folder / ("capacity-scheduler.xml" if name == "capacity" else f"{name}-site.xml")
        file.write_text(to_xml(settings))
    (folder / "log4j.properties").write_text(LOG4J)
    if spark is not None:
        (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in spark.items()))


def to_xml(settings: Mapping[str, str]) -> str:
    properties = [
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    ]
    return f"<configuration>\n{''.join(properties)}</configuration>\n"
