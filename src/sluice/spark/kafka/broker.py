"""A broker on this machine: one node of Kafka (KRaft) from its own jars, on the loopback address.

It ends with its supervisor, as the daemons of a cluster do. A broker that dies is started again on the same data; a
new `up` begins with none.
"""

from __future__ import annotations

import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import SluiceError
from sluice.spark.causes import last_error
from sluice.spark.cluster.jars import JarSet
from sluice.spark.cluster.lifecycle import clear_home, default_home, start
from sluice.spark.cluster.plan import ClusterPlan, ClusterSize, ClusterState, Daemon
from sluice.spark.cluster.processes import free_port
from sluice.spark.session import java_command

HOST = "127.0.0.1"
KAFKA_VERSION = "4.3.1"
KAFKA = JarSet(
    name=f"kafka-{KAFKA_VERSION}",
    whose=f"Kafka {KAFKA_VERSION}",
    needed_by="a broker",
    artifacts={"org.apache.kafka:kafka_2.13": KAFKA_VERSION, "org.slf4j:slf4j-simple": "1.7.36"},
)
FORMAT_TIMEOUT_S = 120.0
JAVA_OPTIONS = [
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
]


def kafka_home() -> Path:
    return default_home().with_name("kafka")


@dataclass(frozen=True, kw_only=True)
class Login:
    """A second address, where clients must log in (SASL, PLAIN) over TLS; `pem` holds the key and the certificate."""

    port: int
    user: str
    password: str
    pem: Path

    def settings(self) -> dict[str, str]:
        user = f'username="{self.user}" password="{self.password}" user_{self.user}="{self.password}"'
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return {
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{module} required {user};",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.pem),
        }


def up(home: Path, login: Login | None = None) -> ClusterState:
    """Start a broker and wait for its first answer; the first call ever downloads 44 MB."""
    jars = KAFKA.get()
    clear_home(home)
    shutil.rmtree(home / "data", ignore_errors=True)
    plan = make_plan(home.resolve(), jars, login)
    _format(home.resolve(), plan.daemons["broker"])
    return start(home, plan)


def make_plan(home: Path, jars: Path, login: Login | None = None) -> ClusterPlan:
    """Writes the configuration the broker reads."""
    port, controller_port = free_port(), free_port()
    home.mkdir(parents=True, exist_ok=True)
    lines = [f"{name}={value}\n" for name, value in settings(home, port, controller_port, login).items()]
    (home / "server.properties").write_text("".join(lines))
    mark = f"-Dsluice.kafka={home}"
    java = shutil.which(java_command()) or "java"
    command = [java, *JAVA_OPTIONS, mark, "-cp", f"{jars.resolve()}/*", "kafka.Kafka", str(home / "server.properties")]
    return ClusterPlan(
        kind="kafka",
        size=ClusterSize(workers=1, slots=1),
        master_url=f"{HOST}:{port}",
        web_url=f"{HOST}:{port}",
        daemons={"broker": Daemon(command=command, restart=True)},
        mark=mark,
    )


def settings(home: Path, port: int, controller_port: int, login: Login | None = None) -> dict[str, str]:
    """One node that is broker and controller; topics of its own have one copy and few partitions."""
    for_clients = f"PLAINTEXT://{HOST}:{port}" + (f",SASL_SSL://{HOST}:{login.port}" if login else "")
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"{for_clients},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": for_clients,
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "log.dirs": str(home / "data"),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        **(login.settings() if login else {}),
    }


def _format(home: Path, broker: Daemon) -> None:
    """A node of Kafka starts only in a folder that was made for it."""
    words = broker.command[: broker.command.index("kafka.Kafka")]
    # one that began with "-" would be taken for an option
    cluster_id = "k" + urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
    words += ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(home / "server.properties")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False)
    if done.returncode:
        reason = last_error(done.stdout + done.stderr) or "it ended without a message"
        raise SluiceError(f"the broker's folder could not be made: {reason}")
