"""Begin of a small Kubernetes: etcd, Kubernetes' API server, scheduler and controllers, and nodes of our own.

A slot is a core of a node. An API server that dies is started anew, and executors run on meanwhile; a node that dies is
not ready after ten seconds, and its executors end with it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from sluice.errors import BadInputError
from sluice.spark.cluster.kubernetes import after_api, node
from sluice.spark.cluster.kubernetes.access import HOST, NAMESPACE, Keys, grant, make_token, write_client, write_tokens
from sluice.spark.cluster.kubernetes.admin import ADMIN_FILE, admin_of
from sluice.spark.cluster.kubernetes.programs import kubernetes_programs
from sluice.spark.cluster.lifecycle import clear_home, down, start
from sluice.spark.cluster.plan import ClusterPlan, ClusterSize, ClusterState, Daemon
from sluice.spark.cluster.processes import free_port

LOST_AFTER_S = 10
"""A node not heard of for so long is not ready."""
OVERHEAD = 0.4
"""Of an executor's memory, at most, that Spark adds for what is not the JVM's; 384 MiB at least."""
CONTROLLERS = (
    "garbage-collector-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "serviceaccount-controller",
    "taint-eviction-controller",
)
ADMIN = "admin"
TOKEN_SETTING = "spark.kubernetes.authenticate.oauthTokenFile"


def up(home: Path, *, workers: int, slots: int, memory_mb: int = 1024) -> ClusterState:
    size = ClusterSize(workers=workers, slots=slots, memory_mb=memory_mb)
    if workers < 1:
        raise BadInputError(f"workers must be at least 1, got {workers}")
    programs = kubernetes_programs()
    clear_home(home)
    for name in ("kube", "conf", "work"):
        shutil.rmtree(home / name, ignore_errors=True)
    plan = make_plan(home.resolve(), size, programs)
    state = start(home, plan)
    try:
        _let_jobs_in(state)
    except BaseException:
        down(home)
        raise
    return state


def make_plan(home: Path, size: ClusterSize, programs: Path) -> ClusterPlan:
    """Makes keys and tokens, and writes the files of clients. `mark` is no folder that a job's settings name."""
    own, conf = home / "kube", home / "conf" / "job"
    keys, url = Keys(own / "keys"), f"https://{HOST}:{free_port()}"
    own.mkdir(mode=0o700, parents=True)
    keys.make()
    conf.mkdir(mode=0o700, parents=True)
    shutil.copy(keys.certificate, conf / "ca.crt")
    nodes = [f"node-{number}" for number in range(size.workers)]
    groups = {ADMIN: "system:masters", "system:kube-scheduler": "", "system:kube-controller-manager": ""}
    tokens = write_tokens(own / "tokens.csv", {**groups, **{f"system:node:{name}": "system:nodes" for name in nodes}})
    clients = {
        user: write_client(own / "clients" / user.rpartition(":")[2], url, keys.certificate, token)
        for user, token in tokens.items()
    }
    write_client(conf / ADMIN_FILE, url, conf / "ca.crt", tokens[ADMIN])
    settings = job_settings(conf)
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    mark = f"{own}/"
    daemons = _control_plane(own, url, keys, programs, clients)
    for name in nodes:
        arguments = [name, size.slots, node_memory_mb(size), clients[f"system:node:{name}"], home / "work" / name, mark]
        daemons[name] = Daemon(command=[sys.executable, "-m", node.__name__, *map(str, arguments)])
    return ClusterPlan(
        kind="kubernetes",
        size=size,
        master_url=f"k8s://{url}",
        web_url=url,
        daemons=daemons,
        mark=mark,
        conf_dir=str(conf),
        settings=settings,
    )


def _control_plane(own: Path, url: str, keys: Keys, programs: Path, clients: Mapping[str, Path]) -> dict[str, Daemon]:
    etcd_url, peer_url = (f"http://{HOST}:{free_port()}" for _ in range(2))
    etcd = [
        f"--data-dir={own / 'etcd'}",
        f"--listen-client-urls={etcd_url}",
        f"--advertise-client-urls={etcd_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
    api_server = [
        f"--etcd-servers={etcd_url}",
        f"--bind-address={HOST}",
        f"--secure-port={url.rpartition(':')[2]}",
        f"--tls-cert-file={keys.certificate}",
        f"--tls-private-key-file={keys.private}",
        f"--token-auth-file={own / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys.signing}",
        f"--service-account-signing-key-file={keys.signing}",
        "--service-cluster-ip-range=10.0.0.0/24",
        # nobody asks for the service of the API itself
        "--endpoint-reconciler-type=none",
    ]
    scheduler = ["--leader-elect=false", "--secure-port=0"]
    controllers = [
        *scheduler,
        f"--controllers={','.join(CONTROLLERS)}",
        # each controller has the rights of its own account
        "--use-service-account-credentials",
        "--node-monitor-period=1s",
        f"--node-monitor-grace-period={LOST_AFTER_S}s",
    ]

    def after(name: str, arguments: list[str]) -> Daemon:
        client = clients[f"system:{name}"]
        waiting = [sys.executable, "-m", after_api.__name__, str(client)]
        return Daemon(command=[*waiting, str(programs / name), f"--kubeconfig={client}", *arguments], restart=True)

    return {
        "etcd": Daemon(command=[str(programs / "etcd"), *etcd], restart=True),
        "apiserver": Daemon(command=[str(programs / "kube-apiserver"), *api_server], restart=True),
        "scheduler": after("kube-scheduler", scheduler),
        "controllers": after("kube-controller-manager", controllers),
    }


def node_memory_mb(size: ClusterSize) -> int:
    return size.slots * (size.memory_mb + max(384, int(size.memory_mb * OVERHEAD)))


def job_settings(conf: Path) -> dict[str, str]:
    return {
        "spark.kubernetes.namespace": NAMESPACE,
        "spark.kubernetes.authenticate.caCertFile": str(conf / "ca.crt"),
        TOKEN_SETTING: str(conf / "token"),
        # pods run as processes with the Spark of the cluster, whatever image they name
        "spark.kubernetes.container.image": "none",
        "spark.pyspark.python": sys.executable,
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.executor.cores": "1",
    }


def _let_jobs_in(state: ClusterState) -> None:
    api, token = admin_of(state), Path(state.settings[TOKEN_SETTING])
    grant(api)
    token.touch(mode=0o600)
    token.write_text(make_token(api))


def environment(state: ClusterState) -> dict[str, str]:
    """Variables a job needs: with them `spark-submit --master k8s://...` finds its settings."""
    assert state.conf_dir is not None
    return {"SPARK_CONF_DIR": state.conf_dir}
