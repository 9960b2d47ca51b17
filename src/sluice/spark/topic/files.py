"""Files that are there whole or not at all: written beside, then renamed; JSON with a checksum of its own.

The promise holds when a process dies at any moment. Nothing is forced to the disk, as Spark's own checkpoints are not;
what a power failure tears is found by the checksums.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from sluice.errors import SluiceError
from sluice.files import replace_file


class CorruptTopicError(SluiceError):
    """A file of the topic is torn, altered or missing; the message names it. Its content is never handed out."""


def save_checked(path: Path, data: Any) -> None:
    body = json.dumps(data, separators=(",", ":")).encode()
    replace_file(path, body + b"\n%08x\n" % zlib.crc32(body))


def load_checked(path: Path) -> Any:
    """FileNotFoundError if there is none; CorruptTopicError if it is not what was saved."""
    content = path.read_bytes()
    body, _, checksum = content.removesuffix(b"\n").rpartition(b"\n")
    if checksum != b"%08x" % zlib.crc32(body):
        raise CorruptTopicError(f"{path}: torn or altered (its checksum does not match)")
    return json.loads(body)
