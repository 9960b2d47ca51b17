"""The one way a file is written: readers see the old content or the new, never a part."""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path

from sluice.errors import BadInputError

TEMPORARY_SUFFIX = ".tmp"


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write beside, then rename: whole or not at all when a process dies at any moment.

    With `durable` the content is on the disk before this returns, so it survives a power failure too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _sync_folder(path.parent)


def check_replaceable(path: Path) -> None:
    """Raise the `OSError` that `replace_file` would, leaving nothing behind but the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent):
        pass


def check_writable(folder: Path, what: str) -> None:
    """Bad input, naming the folder as `what`, unless files can be written in it; made if it is not there."""
    try:
        check_replaceable(folder / "file")
    except OSError as error:
        raise BadInputError(f"{what} must be a folder to write in, got {str(folder)!r}: {error.strerror}") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
