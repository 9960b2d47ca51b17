"""Kubernetes' own programs and etcd, built once from the Go module proxy into a folder that all clusters share."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from sluice.errors import BadInputError, SluiceError
from sluice.spark.cluster.cache import cache_folder, keep_once

VERSION = "1.34.4"
PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}
"""Program -> package. The etcd is the one that this version of Kubernetes is tested with."""
STAGED = [
    "api", "apiextensions-apiserver", "apimachinery", "apiserver", "cli-runtime", "client-go", "cloud-provider",
    "cluster-bootstrap", "code-generator", "component-base", "component-helpers", "controller-manager", "cri-api",
    "cri-client", "csi-translation-lib", "dynamic-resource-allocation", "endpointslice", "externaljwt", "kms",
    "kube-aggregator", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet", "metrics",
    "mount-utils", "pod-security-admission", "sample-apiserver", "sample-cli-plugin", "sample-controller",
]  # fmt: skip
"""Modules Kubernetes keeps in its own repository, released as 0.x instead of 1.x."""
TIMEOUT_S = 3600.0


def programs_folder() -> Path:
    """Where the programs are, or will be; the folder appears when all of them are in it."""
    return cache_folder() / f"kubernetes-{VERSION}"


def kubernetes_programs() -> Path:
    """The folder with the programs; the first call builds them, some ten minutes of two cores."""
    return keep_once(programs_folder(), _build)


def _build(scratch: Path, built: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise BadInputError(
            f"a Kubernetes cluster needs {', '.join(PROGRAMS)} in {programs_folder()}; "
            "install Go to build them, or put them there"
        )
    built.mkdir()
    (scratch / "go.mod").write_text(go_mod())
    for name, package in PROGRAMS.items():
        _run_go([go, "build", "-trimpath", "-ldflags=-s -w", "-o", str(built / name), package], scratch)


def _run_go(command: list[str], module: Path) -> None:
    environment = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
    try:
        done = subprocess.run(
            command, cwd=module, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SluiceError(f"Go did not build {command[-1]} within {TIMEOUT_S:g} s") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip() and ": downloading " not in line]
        raise SluiceError(f"Go did not build {command[-1]}: {next(iter(said), 'it ended without a message')}")


def go_mod() -> str:
    staged = [f"\tk8s.io/{name} => k8s.io/{name} v0{VERSION[1:]}" for name in STAGED]
    lines = ["module sluice", "go 1.24.0", f"require k8s.io/kubernetes v{VERSION}", "replace (", *staged, ")"]
    return "\n".join([*lines, ""])
