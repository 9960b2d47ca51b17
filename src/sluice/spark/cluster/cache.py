"""What clusters need and is got once: folders that all clusters share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from sluice.errors import BadInputError


def cache_folder() -> Path:
    return Path(os.environ.get("SLUICE_CACHE", Path.home() / ".sluice" / "jars"))


def keep_once(folder: Path, fill: Callable[[Path, Path], None]) -> Path:
    """The folder; if it is not there, `fill(scratch, content)` makes its content, and it appears when that is complete.

    `content` does not exist when `fill` is called; `scratch` is gone afterwards.
    """
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot write to {str(folder.parent)!r} (SLUICE_CACHE): {error.strerror}") from error
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
        content = Path(scratch) / "content"
        fill(Path(scratch), content)
        try:
            content.rename(folder)
        except OSError:
            # another process may have been quicker
            if not folder.is_dir():
                raise
    return folder
