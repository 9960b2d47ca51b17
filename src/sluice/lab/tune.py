"""Which settings suit a policy (thesis 7.1, done over several loads and seeds).

Every setting is one variant in a bench. There is no best without a price for lateness: the score is the cost against
the clairvoyant planner plus `late_weight` times the share of time above the objective. Beside it stand the settings
nobody beats in both at once, and each setting's difference to the policy as it is, seed by seed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from sluice.errors import BadInputError
from sluice.journal.records import Choice
from sluice.lab.bench.grid import Setting
from sluice.lab.bench.statistics import Comparison, Estimate, Row, compare, estimate
from sluice.model.base import Frozen

LATE_WEIGHT = 5.0
"""A fifth of the time above the objective weighs as much as the whole cost of the clairvoyant planner."""


class Variant(Frozen):
    """One setting over all cases. `difference` is its score minus that of the untouched policy."""

    policy: str
    score: Estimate
    cost_ratio: Estimate
    slo_violation_ratio: Estimate
    avg_slots: Estimate
    avg_latency_s: Estimate
    unbeaten: bool
    difference: Estimate | None
    p_value: float | None


def parse_range(text: str) -> tuple[str, list[Setting]]:
    """`target=0.5,0.6,0.7` or `target=0.5..0.9:5`, five values from 0.5 to 0.9."""
    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise BadInputError(f"--over takes key=value,value,... or key=low..high:count, got {text!r}")
    if ".." not in values:
        return key.strip(), [value.strip() for value in values.split(",") if value.strip()]
    try:
        bounds, _, count = values.partition(":")
        low, _, high = bounds.partition("..")
        numbers = np.linspace(float(low), float(high), int(count or 5))
    except ValueError as error:
        raise BadInputError(f"--over takes key=low..high:count with numbers, got {text!r}") from error
    return key.strip(), [f"{number:.6g}" for number in numbers]


def variants(
    policy: str, ranges: Mapping[str, Sequence[Setting]], at_most: int | None = None, seed: int = 0
) -> list[Choice]:
    """The untouched policy, then every combination; of too many, a random part without repetition."""
    size = math.prod(len(values) for values in ranges.values())
    if not ranges or not size:
        raise BadInputError("there is nothing to tune: give at least one --over key=values")
    picked = set(range(size))
    if at_most is not None and at_most < size:
        picked = set(np.random.Generator(np.random.PCG64(seed)).choice(size, at_most, replace=False).tolist())
    chosen = [
        Choice(name=policy, settings=dict(zip(ranges, values, strict=True)))
        for number, values in enumerate(itertools.product(*ranges.values()))
        if number in picked
    ]
    return [Choice(name=policy), *chosen]


def rank(rows: Sequence[Row], late_weight: float = LATE_WEIGHT) -> list[Variant]:
    """Best score first."""
    scored = [{**row, "score": row["cost_ratio"] + late_weight * row["slo_violation_ratio"]} for row in rows]
    untouched = scored[0]["policy"]
    means = _mean_of_cases(scored)
    differences = {found.policy: found for found in compare(means, untouched, ["score"])}
    names = list(dict.fromkeys(row["policy"] for row in means))
    own = {name: [row for row in means if row["policy"] == name] for name in names}
    figures = {name: {metric: estimate(row[metric] for row in own[name]) for metric in SHOWN} for name in names}
    points = {
        name: (found["cost_ratio"].mean or 0.0, found["slo_violation_ratio"].mean or 0.0)
        for name, found in figures.items()
    }
    found = [_variant(name, figures[name], differences.get(name), points) for name in names]
    return sorted(found, key=lambda variant: variant.score.mean or 0.0)


SHOWN = ("score", "cost_ratio", "slo_violation_ratio", "avg_slots", "avg_latency_s")


def _variant(
    name: str,
    figures: Mapping[str, Estimate],
    difference: Comparison | None,
    points: Mapping[str, tuple[float, float]],
) -> Variant:
    cost, late = points[name]
    beaten = any(
        other != name and a <= cost and b <= late and (a < cost or b < late) for other, (a, b) in points.items()
    )
    return Variant(
        policy=name,
        **figures,
        unbeaten=not beaten,
        difference=difference.difference if difference else None,
        p_value=difference.p_value if difference else None,
    )


def _mean_of_cases(rows: Sequence[Row]) -> list[Row]:
    """One row per policy and seed: the mean over pipelines and workloads, so that seeds are what repeats."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["policy"], row["seed"]), []).append(row)
    return [
        {
            "engine": "all",
            "pipeline": "all",
            "workload": "all",
            "policy": policy,
            "seed": seed,
            **{metric: float(np.mean([row[metric] for row in found])) for metric in SHOWN},
        }
        for (policy, seed), found in groups.items()
    ]
