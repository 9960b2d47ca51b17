"""Instance sizes and their prices: an example table, and how to bring your own.

The example is shaped like a cloud's general-purpose family: 2 GB per core, a price linear in cores and memory
plus a small share per instance for what every instance repeats. The figures are round and nobody's offer.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from sluice.errors import BadInputError
from sluice.model import InstanceSize

EXAMPLE = tuple(
    InstanceSize(name=name, cpu_cores=cores, memory_mb=2048 * cores, price_per_hour=price)
    for name, cores, price in (
        ("nano", 0.5, 0.026),
        ("micro", 1.0, 0.046),
        ("small", 1.5, 0.066),
        ("medium", 2.0, 0.086),
        ("large", 3.0, 0.126),
        ("xlarge", 4.0, 0.166),
    )
)
ONE_SIZE = (InstanceSize(name="slot", cpu_cores=1.0, memory_mb=2048.0, price_per_hour=0.046),)
TABLES = {"example": EXAMPLE, "one-size": ONE_SIZE}


@lru_cache(maxsize=32)
def price_table(name: str) -> tuple[InstanceSize, ...]:
    """A built-in table by its name, else a JSON file: a list of `{name, cpu_cores, memory_mb, price_per_hour}`."""
    if name in TABLES:
        return TABLES[name]
    path = Path(name)
    try:
        entries = json.loads(path.read_text())
    except OSError as error:
        raise BadInputError(
            f"price table {name!r} is neither built in ({', '.join(TABLES)}) nor a readable file"
        ) from error
    except ValueError as error:
        raise BadInputError(f"price table {name!r} is no JSON: {error}") from error
    if not isinstance(entries, list) or not entries:
        raise BadInputError(f"price table {name!r} must be a list of sizes, got {type(entries).__name__}")
    sizes = tuple(InstanceSize.parse(entry, f"price table {name!r}") for entry in entries)
    names = [size.name for size in sizes]
    if len(set(names)) != len(names):
        raise BadInputError(f"price table {name!r}: size names must differ, got {names}")
    return sizes
