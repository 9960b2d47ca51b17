"""Processes of this machine, found by what their command line names: a process number may long be somebody else's."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
PR_SET_PDEATHSIG = 1


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except (ProcessLookupError, PermissionError):
        return False
    with contextlib.suppress(OSError):
        return (PROC / str(process_id) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def marked_processes(mark: str) -> list[int]:
    """Every live process but this one whose command line contains the mark."""
    return [number for number, command in _commands() if mark in command and number != os.getpid() and is_alive(number)]


def processes_in(folder: str | None) -> list[int]:
    """Every live process but this one whose working folder is in this one: what a worker of a cluster has started."""
    found = []
    if folder is None or not PROC.exists():
        return []
    for entry in PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if f"{os.readlink(entry / 'cwd')}/".startswith(f"{folder}/") and is_alive(int(entry.name)):
                    found.append(int(entry.name))
    return found


def _commands() -> Iterator[tuple[int, str]]:
    if not (PROC / "self" / "cmdline").exists():
        listed = subprocess.run(["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True)
        for line in listed.stdout.splitlines():
            number, _, command = line.strip().partition(" ")
            yield int(number), command
        return
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def end(*process_ids: int, patience_s: float = 10.0) -> None:
    """SIGTERM to all, and SIGKILL to those that are still there after a while."""
    for process_id in process_ids:
        _signal(process_id, signal.SIGTERM)
    deadline_s = time.monotonic() + patience_s
    while any(map(is_alive, process_ids)) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    for process_id in filter(is_alive, process_ids):
        _signal(process_id, signal.SIGKILL)


def _signal(process_id: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process_id, number)


def end_with_parent() -> None:
    """For a child to call before it becomes another program: Linux then ends it with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
