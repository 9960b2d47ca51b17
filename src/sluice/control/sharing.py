"""One parallelism for operators that share their instances, as the queries of an application share its executors."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sluice.model import Observation


def shared_parallelism(counts: Mapping[str, int], observation: Observation) -> tuple[int, str | None]:
    """The mean of what every operator should have, weighted by its share of the work, rounded up.

    Each count is a factor on the instances all operators share, so with one operator this is its count. Work is the
    busy share; operators weigh the same where it is unknown for any of them. The sentence says how it was done.
    """
    weights = _weights(counts, observation)
    one = max(1, math.ceil(sum(weights[name] * count for name, count in counts.items()) - 1e-9))
    if len(set(counts.values())) == 1:
        return one, None
    parts = ", ".join(f"{name} {count} ({weights[name]:.0%} of the work)" for name, count in counts.items())
    return one, f"shared instances: {parts} make {one}"


def _weights(counts: Mapping[str, int], observation: Observation) -> dict[str, float]:
    busy = {name: observation.operators[name].busy for name in counts}
    known = {name: share for name, share in busy.items() if share is not None}
    total = sum(known.values())
    if len(known) < len(busy) or total <= 0:
        return dict.fromkeys(counts, 1 / len(counts))
    return {name: share / total for name, share in known.items()}
