"""How long records waited, from the files they came in and Spark's log of which batch read which file."""

from __future__ import annotations

import bisect
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Latencies:
    """By record: from the moment its file appeared to the end of the batch it was in."""

    p50_s: float
    p95_s: float
    longest_s: float
    batches: int
    batches_late: int


def latencies(
    root: Path, progress: list[Mapping[str, Any]], appeared: Mapping[str, float], objective_s: float
) -> Latencies:
    """Of the files in `appeared`, by the log in which Spark notes the batch of each.

    Its row counts would not do: what is computed anew after a loss is in them twice.
    """
    from sluice.spark.observe.events import read_batch

    ended = {
        one["sources"][0]["endOffset"]["logOffset"]: batch.ended_s
        for one in progress
        if (batch := read_batch(one)) is not None and batch.records
    }
    order = sorted(ended)
    waits, counts, per_batch = [], [], defaultdict(list)
    for name, entry in _source_log(root).items():
        if name not in appeared:
            continue
        batch = order[bisect.bisect_left(order, entry)]
        waits.append(ended[batch] - appeared[name])
        counts.append((root / "in" / name).read_text().count("\n"))
        per_batch[batch].append(waits[-1])
    values = np.repeat(waits, counts)
    p50_s, p95_s = np.percentile(values, [50, 95])
    late = sum(max(found) > objective_s for found in per_batch.values())
    return Latencies(float(p50_s), float(p95_s), float(values.max()), len(per_batch), late)


def _source_log(root: Path) -> dict[str, int]:
    """File name -> entry of the source's log."""
    found: dict[str, int] = {}
    for part in (root / "checkpoint" / "sources" / "0").iterdir():
        if not part.name.startswith("."):
            for line in part.read_text().splitlines()[1:]:
                entry = json.loads(line)
                found[entry["path"].rpartition("/")[2]] = entry["batchId"]
    return found
