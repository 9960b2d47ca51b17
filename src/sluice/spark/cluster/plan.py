"""A cluster as data: which processes it consists of, and what a job must know to use it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sluice.errors import BadInputError
from sluice.spark.cluster.limits import CpuLimit

LEAST_CPUS = 0.05
"""With less a worker does not even register in time."""


@dataclass(frozen=True, kw_only=True)
class ClusterSize:
    """Workers with so many slots each, memory for the executors of one slot, and the CPU a worker may use."""

    workers: int
    slots: int
    memory_mb: int = 1024
    cpus: float | None = None
    """Null: as much as there is."""

    def __post_init__(self) -> None:
        for name, least in (("workers", 0), ("slots", 1), ("memory_mb", 512)):
            if getattr(self, name) < least:
                raise BadInputError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.cpus is not None and not LEAST_CPUS <= self.cpus < math.inf:
            raise BadInputError(f"cpus must be at least {LEAST_CPUS:g}, got {self.cpus:g}")


@dataclass(frozen=True, kw_only=True)
class Daemon:
    """A process of a cluster. One that dies stays dead unless `restart`, so that one can see what a job does then."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    """Beside the supervisor's own."""
    restart: bool = False
    limit: CpuLimit | None = None

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Daemon:
        limit = fields.pop("limit", None)
        return cls(limit=CpuLimit(**limit) if limit else None, **fields)


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
    worker_hosts: dict[str, str] = field(default_factory=dict)
    work_folder: str | None = None
    """What runs in it was started by a worker: it has no mark of its own."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ClusterPlan:
        fields: dict[str, Any] = json.loads(text)
        daemons = {name: Daemon.from_fields(daemon) for name, daemon in fields.pop("daemons").items()}
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
    cpus: float | None = None
    worker_hosts: dict[str, str] = field(default_factory=dict)
    """Daemon -> the address its executors have."""
    work_folder: str | None = None
    cpu_groups: list[str] = field(default_factory=list)
    """Control groups that limit the workers; empty where they are pinned to cores or unlimited."""


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
        worker_hosts=plan.worker_hosts,
        work_folder=plan.work_folder,
        cpu_groups=[one.limit.group for one in plan.daemons.values() if one.limit and one.limit.group],
        **asdict(plan.size),
    )


def read_recorded(path: Path) -> ClusterState | None:
    try:
        return ClusterState(**json.loads(path.read_text()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None
