"""CPU time of this process and all it started, by what the system counts: Spark's own metrics leave Python out."""

from __future__ import annotations

import os
from pathlib import Path

_PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 1, 11, 12, 13, 14
"""Places in /proc/PID/stat, counted from the state that follows the name."""


def cpu_seconds(pid: int | None = None, proc: Path = Path("/proc")) -> float | None:
    """Core-seconds so far, ended children included; None where the system does not tell."""
    tables = {}
    for entry in proc.glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended while we looked; its parent counts it from now on
        tables[int(entry.parent.name)] = fields
    if not tables:
        return None
    family = {pid or os.getpid()}
    grown = True
    while grown:
        children = {found for found, fields in tables.items() if int(fields[_PARENT]) in family}
        grown = not children <= family
        family |= children
    ticks = sum(
        int(tables[member][place])
        for member in family & tables.keys()
        for place in (_USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM)
    )
    return ticks / os.sysconf("SC_CLK_TCK")
