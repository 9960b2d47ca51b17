"""A small client of the Kubernetes API: the few calls a cluster of processes needs, with a token and a certificate."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"


class ApiError(OSError):
    """The API server refused; `code` is HTTP's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Api:
    """An API server as one of its users. Raises `OSError` while it is away."""

    url: str
    certificate: Path
    token: str
    timeout_s: float = 10.0

    def get(self, path: str) -> Json:
        return self._call("GET", path)

    def post(self, path: str, body: Json) -> Json:
        return self._call("POST", path, body)

    def create(self, path: str, body: Json) -> None:
        """Unless there is one of this name already."""
        try:
            self.post(path, body)
        except ApiError as error:
            if error.code != 409:
                raise

    def apply(self, path: str, manifest: str) -> Json:
        """A manifest in YAML, as `kubectl apply --server-side`; the path ends with `?fieldManager=...`."""
        return self._call("PATCH", path, manifest, "application/apply-patch+yaml")

    def patch(self, path: str, body: Json, kind: str = MERGE) -> Json:
        return self._call("PATCH", path, body, kind)

    def delete(self, path: str, *, grace_s: int | None = None) -> None:
        """What is gone already is as good as deleted."""
        try:
            self._call("DELETE", path, None if grace_s is None else {"gracePeriodSeconds": grace_s})
        except ApiError as error:
            if error.code != 404:
                raise

    def _call(self, method: str, path: str, body: Json | str | None = None, kind: str = "application/json") -> Json:
        request = urllib.request.Request(
            f"{self.url}{path}",
            method=method,
            data=None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": kind},
        )
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s, context=trusted) as answer:
                found: Json = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, _message(error.read(), str(error))) from error


def _message(answer: bytes, otherwise: str) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return otherwise
