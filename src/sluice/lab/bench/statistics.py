"""Mean, confidence interval and paired comparison over seeds.

The seeds of two policies are the same loads and the same noise, so their difference seed by seed says more than two
intervals side by side. Both use Student's t; Wilcoxon's signed-rank test stands beside it for those who doubt that
the differences are normal. `scipy.stats` takes longer to import than a run to simulate; it is imported where used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sluice.model.base import Count, Finite, Frozen

METRICS = (
    "avg_slots",
    "max_slots",
    "avg_latency_s",
    "p50_latency_s",
    "p95_latency_s",
    "max_latency_s",
    "rescales",
    "throughput_ratio",
    "slo_violation_ratio",
    "slot_seconds",
    "downtime_s",
    "avg_cpu",
    "oscillations",
    "cost_ratio",
    "parallelism_accuracy",
    "over_provisioned_slots",
    "under_provisioned_slots",
    "converge_s",
    "converge_actions",
)
CONFIDENCE = 0.95
Row = Mapping[str, Any]


class Estimate(Frozen):
    """Mean of a metric over the seeds that have it; the interval is null with fewer than two."""

    mean: Finite | None
    low: Finite | None
    high: Finite | None
    count: Count


class GroupScore(Frozen):
    """One policy on one pipeline and workload, over its seeds."""

    engine: str
    pipeline: str
    workload: str
    policy: str
    estimates: dict[str, Estimate]


class Comparison(Frozen):
    """Policy minus baseline, paired by seed. `p_value` is of the t test, `wilcoxon_p` of the signed-rank test."""

    engine: str
    pipeline: str
    workload: str
    policy: str
    baseline: str
    metric: str
    difference: Estimate
    p_value: Finite | None
    wilcoxon_p: Finite | None


def estimate(values: Iterable[float | None]) -> Estimate:
    known = np.array([value for value in values if value is not None], dtype=float)
    if known.size == 0:
        return Estimate(mean=None, low=None, high=None, count=0)
    mean = float(known.mean())
    if known.size == 1:
        return Estimate(mean=mean, low=None, high=None, count=1)
    from scipy import stats

    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, known.size - 1) * known.std(ddof=1) / np.sqrt(known.size))
    return Estimate(mean=mean, low=mean - reach, high=mean + reach, count=int(known.size))


def score_group(rows: Sequence[Row]) -> GroupScore:
    """Rows of one engine, pipeline, workload and policy; their order does not matter."""
    rows = sorted(rows, key=lambda row: row["seed"])
    first = rows[0]
    return GroupScore(
        **{name: first[name] for name in GROUP},
        estimates={metric: estimate(row[metric] for row in rows) for metric in METRICS},
    )


GROUP = ("engine", "pipeline", "workload", "policy")


def score_groups(rows: Iterable[Row]) -> list[GroupScore]:
    """In the order in which the groups first appear."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in GROUP), []).append(row)
    return [score_group(found) for found in groups.values()]


def compare(rows: Iterable[Row], baseline: str, metrics: Sequence[str]) -> list[Comparison]:
    """Every policy against the baseline on every pipeline and workload they share seeds on."""
    by_case: dict[tuple[str, str, str], dict[str, dict[int, Row]]] = {}
    for row in rows:
        case = by_case.setdefault((row["engine"], row["pipeline"], row["workload"]), {})
        case.setdefault(row["policy"], {})[row["seed"]] = row
    return [
        _compare(case, policy, baseline, metric, found[policy], found[baseline])
        for case, found in by_case.items()
        if baseline in found
        for policy in found
        if policy != baseline
        for metric in metrics
    ]


def _compare(
    case: tuple[str, str, str],
    policy: str,
    baseline: str,
    metric: str,
    ours: Mapping[int, Row],
    theirs: Mapping[int, Row],
) -> Comparison:
    from scipy import stats

    pairs = [(ours[seed][metric], theirs[seed][metric]) for seed in sorted(ours.keys() & theirs.keys())]
    differences = np.array([a - b for a, b in pairs if a is not None and b is not None])
    # differences that are all the same have no spread to test against
    testable = differences.size >= 2 and bool(np.ptp(differences) > 1e-9 * np.abs(differences).max())
    engine, pipeline, workload = case
    return Comparison(
        engine=engine,
        pipeline=pipeline,
        workload=workload,
        policy=policy,
        baseline=baseline,
        metric=metric,
        difference=estimate(differences),
        p_value=float(stats.ttest_1samp(differences, 0.0).pvalue) if testable else None,
        wilcoxon_p=float(stats.wilcoxon(differences).pvalue) if testable else None,
    )
