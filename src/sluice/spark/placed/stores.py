"""Which state stores a query has, from the record Spark keeps of them in its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

JOIN_STORES = tuple(
    f"{side}-{kind}" for side in ("left", "right") for kind in ("keyToNumValues", "keyWithIndexToValue")
)
ASSUMED = dict.fromkeys(range(4), ("default", *JOIN_STORES))
"""Before the first batch there is no record. A place for a store that does not exist is asked for by nobody."""


def stores_of(checkpoint: Path) -> dict[int, tuple[str, ...]]:
    """Stateful operator -> names of the stores each of its partitions has; empty before the first batch."""
    found = {}
    for folder in (checkpoint / "state").glob("[0-9]*"):
        names = _names(folder / "_metadata")
        if names:
            found[int(folder.name)] = names
    return found


def _names(folder: Path) -> tuple[str, ...]:
    """The newest record; its first line is a version."""
    records = sorted((path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")), key=_age)
    for record in reversed(records):
        for line in record.read_text().splitlines():
            if line.startswith("{"):
                return tuple(store["storeName"] for store in json.loads(line).get("stateStoreInfo", ()))
    return ()


def _age(path: Path) -> float:
    return path.stat().st_mtime
