"""How good a model comes from how many samples: DSA against FSSA (QEScalor paper, tables 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sluice.lab.sizing.operators import SizedOperator, sampled_sizes
from sluice.learning.performance import PerformanceModel, errors
from sluice.learning.sampling import DynamicSampling, FixedStepSampling, Sample

SAMPLERS: Mapping[str, DynamicSampling | FixedStepSampling] = {
    **{f"FSSA{step}": FixedStepSampling(step=step) for step in (2, 3, 4, 5)},
    "DSA": DynamicSampling(),
}
BASELINE_SEED = 1_000
"""The sampling with every step against which all are scored is a run of its own, not the truth: as in the paper."""


@dataclass(frozen=True)
class Score:
    """Mean over repeats; errors are relative to the operator's largest rate."""

    rmse: float
    mae: float
    samples: float
    rmses: tuple[float, ...]
    """One per repeat."""


def baseline(operator: SizedOperator, seed: int) -> tuple[Sample, ...]:
    """Every size sampled (FSSA with step 1, never stopped)."""
    everything = FixedStepSampling(step=1, max_stop_count=10_000)
    return everything.sample(operator.target(BASELINE_SEED + seed), sampled_sizes())


def compare_samplers(
    operator: SizedOperator, repeats: int, report: Callable[[str], None] = lambda _: None
) -> dict[str, Score]:
    """Table 2: the random forest's error at every size, by sampler."""
    scores: dict[str, list[tuple[float, float, float]]] = {name: [] for name in SAMPLERS}
    for seed in range(repeats):
        truth = baseline(operator, seed)
        for name, sampler in SAMPLERS.items():
            taken = sampler.sample(operator.target(seed), sampled_sizes())
            scores[name].append(_score(taken, truth, "forest", seed))
        report(f"{operator.name}: repeat {seed + 1} of {repeats}")
    return {name: _mean(found) for name, found in scores.items()}


def compare_models(
    operator: SizedOperator, kinds: Sequence[str], repeats: int, report: Callable[[str], None] = lambda _: None
) -> dict[str, Score]:
    """Table 3: trained on DSA's samples, tested on the baseline, by kind of model."""
    scores: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in kinds}
    for seed in range(repeats):
        truth = baseline(operator, seed)
        taken = SAMPLERS["DSA"].sample(operator.target(seed), sampled_sizes())
        for kind in kinds:
            scores[kind].append(_score(taken, truth, kind, seed))
        report(f"{operator.name}: repeat {seed + 1} of {repeats}")
    return {kind: _mean(found) for kind, found in scores.items()}


def _score(taken: tuple[Sample, ...], truth: Sequence[Sample], kind: str, seed: int) -> tuple[float, float, float]:
    predicted = PerformanceModel(taken, kind, seed).rates([sample.size for sample in truth])
    found = errors(predicted.tolist(), [sample.rate for sample in truth])
    return found.rmse, found.mae, len(taken)


def _mean(scores: Sequence[tuple[float, float, float]]) -> Score:
    rmse, mae, samples = np.mean(scores, axis=0).tolist()
    return Score(rmse, mae, samples, tuple(each[0] for each in scores))
