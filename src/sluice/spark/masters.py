"""The masters of clusters that pipelines run on: how they are written, and whether one answers."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from sluice.errors import BadInputError

YARN = "yarn"
YARN_SITE = "yarn-site.xml"
ANSWER_TIMEOUT_S = 5.0
_ADDRESS = re.compile(r"(?P<host>[^\s:/\[\]]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})")


def check_master(master: str) -> None:
    """Bad input for a master whose executors cannot be told apart by host and number, or cannot be found."""
    if master == YARN:
        _check_yarn()
    elif not addresses(master):
        raise BadInputError(
            f"pipelines run on a standalone cluster's master, spark://HOST:PORT, or on yarn, got {master!r}; "
            f"without --master Spark runs in this process"
        )


def addresses(master: str) -> list[tuple[str, int]]:
    """Host and port of a standalone master, of several that stand in for each other; empty for anything else."""
    if not master.startswith("spark://"):
        return []
    found = [_ADDRESS.fullmatch(one) for one in master.removeprefix("spark://").split(",")]
    parts = [(one["host"].strip("[]"), int(one["port"])) for one in found if one and 0 < int(one["port"]) < 2**16]
    return parts if len(parts) == len(found) else []


def check_answers(master: str) -> None:
    """Bad input if nobody listens at a standalone master's address: Spark itself tries for a minute."""
    said = []
    for host, port in addresses(master):
        try:
            socket.create_connection((host, port), ANSWER_TIMEOUT_S).close()
        except OSError as error:
            said.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    if said:
        raise BadInputError(f"no master answers at {master!r} ({'; '.join(said)}); is the cluster up?")


def _check_yarn() -> None:
    given = {name: os.environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)}
    if not given:
        raise BadInputError(f"--master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR, the folder with {YARN_SITE}")
    if not any((Path(folder) / YARN_SITE).is_file() for folder in given.values()):
        said = ", ".join(f"{name}={folder!r}" for name, folder in given.items())
        raise BadInputError(f"--master yarn needs a folder with {YARN_SITE}, got {said}")
