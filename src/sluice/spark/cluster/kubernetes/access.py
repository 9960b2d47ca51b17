"""Who may do what on a small Kubernetes: keys, tokens, files for clients, and the rights of a Spark job."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice.errors import BadInputError, SluiceError
from sluice.spark.cluster.kubernetes.api import Api, Json

HOST = "127.0.0.1"
NAMESPACE = "default"
SERVICE_ACCOUNT = "spark"
TOKEN_LIFE_S = 30 * 24 * 3600
RIGHTS: list[Json] = [
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "watch"],
    },
    {
        "apiGroups": [""],
        "resources": ["configmaps", "persistentvolumeclaims", "services"],
        "verbs": ["create", "delete", "deletecollection", "get", "list", "watch"],
    },
]
"""What the driver of a job needs, in its own namespace alone; examples/kubernetes/rbac.yaml grants the same."""


@dataclass(frozen=True)
class Keys:
    """Files of a server's certificate, which clients trust, and of what signs the tokens of service accounts."""

    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "server.crt"

    @property
    def private(self) -> Path:
        return self.folder / "server.key"

    @property
    def signing(self) -> Path:
        return self.folder / "accounts.key"

    def make(self) -> None:
        openssl = shutil.which("openssl")
        if openssl is None:
            raise BadInputError("a Kubernetes cluster needs keys; install openssl, which makes them")
        self.folder.mkdir(parents=True)
        new = ["-newkey", "rsa:2048", "-nodes", "-x509", "-days", "3650", "-subj", f"/CN={HOST}"]
        uses = ["-addext", f"subjectAltName=IP:{HOST}", "-addext", "keyUsage=critical,digitalSignature,keyCertSign"]
        for command in (
            ["req", *new, *uses, "-keyout", str(self.private), "-out", str(self.certificate)],
            ["genrsa", "-out", str(self.signing), "2048"],
        ):
            done = subprocess.run([openssl, *command], capture_output=True, text=True, check=False)
            if done.returncode:
                raise SluiceError(f"openssl {command[0]} failed: {' '.join(done.stderr.split())[-300:]}")


def write_tokens(file: Path, groups: Mapping[str, str]) -> dict[str, str]:
    """The API server's file of tokens that do not expire; user -> token. `groups` has each user's group, or ''."""
    tokens = {user: secrets.token_hex(24) for user in groups}
    file.write_text("".join(f'{tokens[user]},{user},{user},"{group}"\n' for user, group in groups.items()))
    return tokens


def write_client(file: Path, url: str, certificate: Path, token: str) -> Path:
    """A file for KUBECONFIG."""
    client = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sluice", "cluster": {"server": url, "certificate-authority": str(certificate)}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "sluice", "context": {"cluster": "sluice", "user": "user", "namespace": NAMESPACE}}],
        "current-context": "sluice",
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(json.dumps(client, indent=2))
    return file


def read_client(file: Path) -> Api:
    found: dict[str, Any] = json.loads(file.read_text())
    cluster = found["clusters"][0]["cluster"]
    return Api(cluster["server"], Path(cluster["certificate-authority"]), found["users"][0]["user"]["token"])


def grant(api: Api) -> None:
    """Make the service account and give it the rights of a job."""
    name = {"name": SERVICE_ACCOUNT}
    subject = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
    rights = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
    api.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": name})
    api.create(f"{rights}/roles", {"metadata": name, "rules": RIGHTS})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": SERVICE_ACCOUNT}
    api.create(f"{rights}/rolebindings", {"metadata": name, "roleRef": role, "subjects": [subject]})


def make_token(api: Api) -> str:
    """Of the service account, as a pod would get it."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{SERVICE_ACCOUNT}/token"
    made = api.post(path, {"spec": {"expirationSeconds": TOKEN_LIFE_S}})
    return str(made["status"]["token"])
