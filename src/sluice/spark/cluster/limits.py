"""How much CPU a worker and everything it starts may use: a quota of a control group, else cores to itself.

A quota holds for every process of the group together, Python workers included. Where no group may be made, workers
are pinned to cores: below one core, neighbours share it, and each gets its share while all work.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import BadInputError

PERIOD_US = 100_000
CGROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


@dataclass(frozen=True, kw_only=True)
class CpuLimit:
    """`group` is the folder of a control group; null where the worker is pinned to `cores` instead."""

    cpus: float
    cores: list[int]
    group: str | None = None

    def enter(self) -> None:
        """For a child to call before it becomes another program: all it starts is limited with it."""
        if self.group is not None:
            (Path(self.group) / "cgroup.procs").write_text(str(os.getpid()))
        elif hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self.cores)

    def remove(self) -> None:
        """Remove the group; nothing if processes stay in it. One that has just ended is in it for a moment."""
        for _ in range(10 if self.group is not None else 0):
            try:
                os.rmdir(str(self.group))
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)


def limits_for(home: Path, workers: int, cpus: float) -> list[CpuLimit]:
    """One limit per worker, its group made; bad input if the machine has not that many cores."""
    here = available_cores()
    if workers * cpus > len(here) + 1e-9:
        raise BadInputError(
            f"{workers} workers with {cpus:g} cpus each need {workers * cpus:g} cores, this machine has {len(here)}"
        )
    parent = cpu_hierarchy()
    name = hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:12]
    return [
        CpuLimit(
            cpus=cpus,
            cores=cores_of(number, cpus, here),
            group=make_group(parent / f"sluice-{name}-{number}", cpus) if parent else None,
        )
        for number in range(workers)
    ]


def available_cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def cores_of(number: int, cpus: float, here: list[int]) -> list[int]:
    """Neighbours side by side: with half a core each, workers 0 and 1 share the first one."""
    first = math.floor(number * cpus + 1e-9)
    last = max(first + 1, math.ceil((number + 1) * cpus - 1e-9))
    return here[first:last]


def cpu_hierarchy() -> Path | None:
    """Where groups with a CPU quota may be made: below this process' own group; null: nowhere."""
    try:
        lines = [line.split(":", 2) for line in OWN_GROUPS.read_text().splitlines()]
    except OSError:
        return None
    for _, controllers, path in lines:
        if "cpu" in controllers.split(","):
            folder = CGROUPS / controllers / path.lstrip("/")
            return folder if os.access(folder, os.W_OK) and (folder / "cgroup.procs").exists() else None
    for number, _, path in lines:
        folder = CGROUPS / path.lstrip("/")
        if number == "0" and _hands_cpu_on(folder):
            return folder
    return None


def _hands_cpu_on(folder: Path) -> bool:
    """Whether groups below one of the second version have a quota; asked for if they have none yet."""
    control = folder / "cgroup.subtree_control"
    try:
        if "cpu" not in control.read_text().split():
            control.write_text("+cpu")
    except OSError:
        return False
    return True


def make_group(folder: Path, cpus: float) -> str | None:
    """The folder of the new group; null where it cannot be made or limited."""
    quota_us = round(cpus * PERIOD_US)
    try:
        folder.mkdir(exist_ok=True)
        if (folder / "cpu.max").exists():
            (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        return None
    return str(folder)
