"""What a policy has learned, on disk: saved atomically, loaded at start, versioned."""

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
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return EMPTY_MEMORY
        except OSError as error:
            raise BadInputError(f"cannot read memory {str(self.path)!r}: {error.strerror}") from error
        try:
            saved = json.loads(text)
        except ValueError as error:
            raise BadInputError(f"memory {str(self.path)!r} is not JSON: {error}") from error
        if not isinstance(saved, dict) or not isinstance(saved.get("memory"), dict):
            raise BadInputError(f"memory {str(self.path)!r} does not hold a policy's memory")
        if saved.get("version") != FORMAT_VERSION:
            raise BadInputError(
                f"memory {str(self.path)!r} has version {saved.get('version')!r}; this program reads {FORMAT_VERSION}"
            )
        if saved.get("policy") != self._policy_name:
            raise BadInputError(
                f"memory {str(self.path)!r} belongs to policy {saved.get('policy')!r}, not {self._policy_name!r}"
            )
        memory: dict[str, Any] = saved["memory"]
        return memory

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

    def save(self, memory: Memory) -> None:
        replace_file(self.path, self._encode(memory), durable=True)

    def _encode(self, memory: Memory) -> bytes:
        content = {"version": FORMAT_VERSION, "policy": self._policy_name, "memory": memory}
        return json.dumps(content, allow_nan=False).encode()
