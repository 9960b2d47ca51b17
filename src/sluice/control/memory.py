"""What a policy has learned, on disk: saved atomically, loaded at start, versioned.

The engine time of the last observation is saved with it. Every run's clock begins at 0, and times that a policy
remembers would lie in the future of the next run; the loop lets the policy's time go on from there instead.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sluice.errors import BadInputError
from sluice.files import check_replaceable, replace_file
from sluice.protocol import EMPTY_MEMORY, Memory

FORMAT_VERSION = 1


class MemoryStore:
    """One policy's memory in one file. Another policy's file, or another format, is refused, not misread."""

    def __init__(self, path: Path, policy_name: str) -> None:
        self.path = path
        self._policy_name = policy_name

    def load(self) -> Memory:
        """The memory that was saved, or an empty one."""
        saved = self._read()
        return EMPTY_MEMORY if saved is None else saved["memory"]

    def time_s(self) -> float:
        """The policy's time when its memory was saved; 0 without one."""
        saved = self._read()
        return 0.0 if saved is None else float(saved.get("time_s", 0.0))

    def _read(self) -> dict[str, Any] | None:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BadInputError(f"cannot read memory {str(self.path)!r}: {error.strerror}") from error
        try:
            saved = json.loads(content, parse_constant=_refuse_constant)
        except ValueError as error:
            raise BadInputError(f"memory {str(self.path)!r} is not JSON: {error}") from error
        time_s = saved.get("time_s", 0.0) if isinstance(saved, dict) else None
        if not isinstance(time_s, int | float) or not isinstance(saved.get("memory"), dict):
            raise BadInputError(f"memory {str(self.path)!r} does not hold a policy's memory")
        if saved.get("version") != FORMAT_VERSION:
            raise BadInputError(
                f"memory {str(self.path)!r} has version {saved.get('version')!r}; this program reads {FORMAT_VERSION}"
            )
        if saved.get("policy") != self._policy_name:
            raise BadInputError(
                f"memory {str(self.path)!r} belongs to policy {saved.get('policy')!r}, not {self._policy_name!r}"
            )
        found: dict[str, Any] = saved
        return found

    def check_writable(self) -> None:
        """Refuse a place where nothing can be saved, before there is anything to save."""
        try:
            check_replaceable(self.path)
        except OSError as error:
            raise BadInputError(f"cannot write memory {str(self.path)!r}: {error.strerror}") from error

    def problem(self, memory: Memory) -> str | None:
        """Why this memory cannot be saved, or None."""
        try:
            self._encode(memory)
        except (TypeError, ValueError) as error:
            return str(error)
        return None

    def save(self, memory: Memory, time_s: float = 0.0) -> None:
        replace_file(self.path, self._encode(memory, time_s), durable=True)

    def _encode(self, memory: Memory, time_s: float = 0.0) -> bytes:
        content = {"version": FORMAT_VERSION, "policy": self._policy_name, "time_s": time_s, "memory": memory}
        return json.dumps(content, allow_nan=False).encode()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")
