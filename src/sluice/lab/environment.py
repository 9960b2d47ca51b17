"""What a result was measured on; nothing that names a person, a host or a folder."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import datetime, timezone

from sluice import __version__

PACKAGES = ("numpy", "numba", "scipy", "pyspark", "pyarrow", "scikit-learn")


def environment() -> dict[str, str | int]:
    """Date, machine and versions."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "sluice": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        **{name: version for name in PACKAGES if (version := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """The model's name where the system tells it."""
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"
