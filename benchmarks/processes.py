"""What a run costs the machine: memory and CPU of every process of this session (driver, JVM, Python workers)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def session_processes() -> Iterator[Path]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == os.getsid(0):
                    yield entry
            except ProcessLookupError:
                continue


def cpu_s() -> float:
    ticks = 0
    for process in session_processes():
        try:
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb() -> float:
    """Proportional set size: pages that workers share count once."""
    total_kb = 0
    for process in session_processes():
        try:
            lines = (process / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total_kb += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return total_kb / 1024


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
