"""A real Kubernetes API: how pods become processes, and `attach` on it while a pod is evicted.

What starts one runs only where Kubernetes has been built already: `sluice cluster up --kubernetes` builds it once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluice.cli import main
from sluice.errors import SluiceError
from sluice.spark.cluster.kubernetes import pods, programs
from sluice.spark.cluster.kubernetes.access import NAMESPACE, RIGHTS, Keys, read_client, write_client, write_tokens
from sluice.spark.cluster.kubernetes.admin import admin_of
from sluice.spark.cluster.kubernetes.cluster import node_memory_mb
from sluice.spark.cluster.lifecycle import read_state
from sluice.spark.cluster.plan import ClusterSize
from tests.spark.clusters import check_result, run_cli, run_step_load

EXAMPLES = Path(__file__).parents[2] / "examples" / "kubernetes"
POD: dict[str, Any] = {
    "metadata": {"name": "counts-exec-7", "namespace": "default", "uid": "u", "labels": {"spark-role": "executor"}},
    "spec": {
        "nodeName": "node-1",
        "containers": [
            {
                "name": "executor",
                "image": "none",
                "lifecycle": {"preStop": {"exec": {"command": ["/opt/decom.sh"]}}},
                "env": [
                    {"name": "SPARK_DRIVER_URL", "value": "spark://driver"},
                    {"name": "SPARK_EXECUTOR_ID", "value": "7"},
                    {"name": "SPARK_EXECUTOR_CORES", "value": "1"},
                    {"name": "SPARK_EXECUTOR_MEMORY", "value": "512m"},
                    {"name": "SPARK_APPLICATION_ID", "value": "spark-1"},
                    {"name": "SPARK_JAVA_OPT_10", "value": "-Dten"},
                    {"name": "SPARK_JAVA_OPT_2", "value": "-Dtwo"},
                    {"name": "SPARK_LOCAL_DIRS", "value": "/var/data/spark-1"},
                    {"name": "SPARK_EXECUTOR_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                ],
                "volumeMounts": [{"name": "spark-local-dir-1", "mountPath": "/var/data/spark-1"}],
            }
        ],
    },
}


def test_a_pods_volumes_are_folders_of_this_machine(tmp_path: Path) -> None:
    found = pods.variables(POD, tmp_path)
    assert found["SPARK_LOCAL_DIRS"] == str(tmp_path / "spark-local-dir-1")
    assert found["SPARK_EXECUTOR_POD_IP"] == "127.0.0.1"
    assert pods.volumes(POD, tmp_path) == [tmp_path / "spark-local-dir-1"]


def test_an_executors_command_is_that_of_sparks_image(tmp_path: Path) -> None:
    own = pods.variables(POD, tmp_path)
    words = pods.command(POD, own, java="java", spark_home=Path("/spark"), mark="/home/kube/")
    assert words[:5] == ["java", "-Dtwo", "-Dten", "-Xmx512m", "-Dsluice.cluster=/home/kube/"]
    assert words[words.index("-cp") + 1] == "/spark/jars/*"
    assert words[words.index("--executor-id") + 1] == "7"
    assert words[words.index("--podName") + 1] == "counts-exec-7"


@pytest.mark.parametrize(
    ("exit_code", "phase", "reported"), [(0, "Succeeded", 0), (1, "Failed", 1), (-15, "Failed", 143)]
)
def test_how_a_process_ended_is_the_phase_of_its_pod(exit_code: int, phase: str, reported: int) -> None:
    status = pods.ended(POD, exit_code)["status"]
    assert status["phase"] == phase
    assert status["containerStatuses"][0]["state"] == {"terminated": {"exitCode": reported}}
    assert {one["status"] for one in status["conditions"]} == {"False"}


def test_a_deleted_pod_leaves_as_its_owner_asked() -> None:
    assert pods.is_decommissioned_first(POD)
    deleted = {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "now", "deletionGracePeriodSeconds": 5}}
    assert (pods.is_deleted(POD), pods.is_deleted(deleted), pods.grace_s(deleted)) == (False, True, 5)


def test_modules_of_kubernetes_itself_have_its_version() -> None:
    text = programs.go_mod()
    assert f"require k8s.io/kubernetes v{programs.VERSION}" in text
    assert text.count(f"v0{programs.VERSION[1:]}\n") == len(programs.STAGED)


def test_a_node_has_room_for_what_spark_adds() -> None:
    assert node_memory_mb(ClusterSize(workers=1, slots=2, memory_mb=512)) == 2 * (512 + 384)
    assert node_memory_mb(ClusterSize(workers=1, slots=1, memory_mb=2048)) == 2048 + 819


def test_files_of_clients_are_nobody_elses_and_can_be_read_back(tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "tokens.csv", {"admin": "system:masters", "guest": ""})
    assert len(set(tokens.values())) == 2
    file = write_client(tmp_path / "client", "https://127.0.0.1:1", tmp_path / "ca.crt", tokens["guest"])
    assert file.stat().st_mode & 0o077 == 0
    found = read_client(file)
    assert (found.url, found.certificate, found.token) == (
        "https://127.0.0.1:1",
        tmp_path / "ca.crt",
        tokens["guest"],
    )


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path / "cache"


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit, match="2"):
        main(["cluster", "up", *words])
    return capsys.readouterr().err.splitlines()[-1]


def test_without_go_one_line_says_what_is_missing(empty_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(["--kubernetes", "--home", str(empty_cache / "home")], capsys)
    assert str(programs.programs_folder()) in said
    assert "install Go" in said


def write_go(folder: Path, script: str) -> None:
    program = folder / "go"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_programs_are_built_once(empty_cache: Path) -> None:
    # go build -trimpath -ldflags=... -o FILE PACKAGE
    write_go(empty_cache.parent / "bin", 'echo "$6" > "$5"')
    built = programs.kubernetes_programs()
    assert {file.name: file.read_text().strip() for file in built.iterdir()} == programs.PROGRAMS
    write_go(empty_cache.parent / "bin", "exit 1")
    assert programs.kubernetes_programs() == built


def test_a_build_that_fails_is_quoted_and_leaves_nothing(empty_cache: Path) -> None:
    said = "echo 'go: downloading k8s.io/api v0' >&2; echo 'go: no such host' >&2; exit 1"
    write_go(empty_cache.parent / "bin", said)
    with pytest.raises(SluiceError, match=r"did not build go\.etcd\.io/etcd/server/v3: go: no such host$"):
        programs.kubernetes_programs()
    assert list(empty_cache.iterdir()) == []


def test_without_openssl_one_line_says_so(empty_cache: Path) -> None:
    with pytest.raises(SluiceError, match="install openssl"):
        Keys(empty_cache / "keys").make()


def test_a_cluster_is_of_one_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--yarn or --kubernetes, not both" in refusal(["--yarn", "--kubernetes"], capsys)


@pytest.mark.spark
@pytest.mark.kubernetes
@pytest.mark.slow
@pytest.mark.skipif(
    not programs.programs_folder().is_dir(),
    reason="Kubernetes is not built here; 'sluice cluster up --kubernetes' builds it",
)
def test_attach_on_kubernetes_follows_the_load_and_survives_an_eviction(
    java: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, root = tmp_path / "kubernetes", tmp_path / "job"
    at_home = ["--home", str(home)]
    try:
        cluster = run_cli(["up", "--kubernetes", "--workers", "2", "--slots", "2", *at_home], capsys)
        assert cluster["usage"].startswith(f"SPARK_CONF_DIR={cluster['conf_dir']} spark-submit --master k8s://")
        examples_are_accepted(home)
        template = f"--conf spark.kubernetes.executor.podTemplateFile={EXAMPLES / 'executor-pod.yaml'}"
        run_step_load(root, home, ["executors=2", "eviction"], template)
        assert run_cli(["status", *at_home], capsys)["alive_workers"] == 2
    finally:
        assert run_cli(["down", *at_home], capsys) == {"ended": True}
    check_result(root, cluster["mark"])


def examples_are_accepted(home: Path) -> None:
    """The API server reads YAML itself; the rights granted by hand are those the cluster grants."""
    state = read_state(home)
    assert state is not None
    api = admin_of(state)
    for document in (EXAMPLES / "rbac.yaml").read_text().split("\n---\n"):
        kind = next(line.split()[1] for line in document.splitlines() if line.startswith("kind:"))
        group = "/api/v1" if kind == "ServiceAccount" else "/apis/rbac.authorization.k8s.io/v1"
        path = f"{group}/namespaces/{NAMESPACE}/{kind.lower()}s/spark?fieldManager=example&force=true&dryRun=All"
        applied = api.apply(path, document)
        if kind == "Role":
            assert applied["rules"] == RIGHTS
