"""A cluster as data: which processes it consists of, and what a job must know to use it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sluice.errors import BadInputError


@dataclass(frozen=True, kw_only=True)
class ClusterSize:
    """Workers with so many slots each, and memory for the executors of one slot."""

    workers: int
    slots: int
    memory_mb: int = 1024

    def __post_init__(self) -> None:
        for name, least in (("workers", 1), ("slots", 1), ("memory_mb", 512)):
            if getattr(self, name) < least:
                raise BadInputError(f"{name} must be at least {least}, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class Daemon:
    """A process of a cluster. One that dies stays dead unless `restart`, so that one can see what a job does then."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    """Beside the supervisor's own."""
    restart: bool = False


@dataclass(frozen=True, kw_only=True)
class ClusterPlan:
    """What a supervisor starts, in this order."""

    kind: str
    size: ClusterSize
    master_url: str
    web_url: str
    daemons: dict[str, Daemon]
    mark: str
    """In the command line of every process of this cluster and of no other."""
    conf_dir: str | None = None
    settings: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ClusterPlan:
        fields: dict[str, Any] = json.loads(text)
        daemons = {name: Daemon(**daemon) for name, daemon in fields.pop("daemons").items()}
        return cls(size=ClusterSize(**fields.pop("size")), daemons=daemons, **fields)


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """What a supervisor leaves behind for `status`, `down` and the user's program."""

    kind: str
    supervisor_pid: int
    master_url: str
    web_url: str
    workers: int
    slots: int
    memory_mb: int
    process_ids: dict[str, int]
    mark: str
    conf_dir: str | None
    """For HADOOP_CONF_DIR; null where a job needs none."""
    settings: dict[str, str]
    """Spark settings a job needs on this cluster."""


def state_of(plan: ClusterPlan, supervisor_pid: int, process_ids: dict[str, int]) -> ClusterState:
    return ClusterState(
        kind=plan.kind,
        supervisor_pid=supervisor_pid,
        master_url=plan.master_url,
        web_url=plan.web_url,
        process_ids=process_ids,
        mark=plan.mark,
        conf_dir=plan.conf_dir,
        settings=plan.settings,
        **asdict(plan.size),
    )


def read_recorded(path: Path) -> ClusterState | None:
    try:
        return ClusterState(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
