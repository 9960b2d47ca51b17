"""OPRPM: from an instance's cores and memory to its records/s (QEScalor paper, section 2.3).

Inputs are scaled to [0, 1]; so is the rate, by the largest sample, which makes errors comparable across operators.
The kinds and their settings are those of the paper's table 3.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluice.errors import BadInputError, missing_extra, unknown_name
from sluice.learning.sampling import Sample
from sluice.model import InstanceSize


def _regressor(module: str, name: str, **settings: Any) -> Any:
    package, extra = ("xgboost", "xgboost") if module == "xgboost" else ("scikit-learn", "learning")
    try:
        regressor = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise missing_extra(f"performance model {name}", package, extra) from error
    return regressor(**settings)


def _support_vectors(seed: int) -> Any:  # noqa: ARG001 - the one kind without chance in it
    return _regressor("sklearn.svm", "SVR", kernel="rbf", gamma="scale", C=1.0)


def _xgboost(seed: int) -> Any:
    settings = {"booster": "gbtree", "learning_rate": 0.1, "max_depth": 3, "n_estimators": 100, "n_jobs": 1}
    return _regressor("xgboost", "XGBRegressor", random_state=seed, **settings)


def _ensemble(name: str, estimators: int, seed: int) -> Any:
    return _regressor("sklearn.ensemble", name, n_estimators=estimators, random_state=seed)


KINDS: dict[str, Callable[[int], Any]] = {
    "forest": partial(_ensemble, "RandomForestRegressor", 100),
    "svr": _support_vectors,
    "adaboost": partial(_ensemble, "AdaBoostRegressor", 50),
    "gradient-boosting": partial(_ensemble, "GradientBoostingRegressor", 100),
    "xgboost": _xgboost,
}
"""Seed -> a fresh regressor."""

GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "forest": {"n_estimators": (30, 100), "max_depth": (None, 3), "min_samples_leaf": (1, 2)},
    "svr": {"C": (1.0, 10.0, 100.0), "epsilon": (0.01, 0.1)},
    "adaboost": {"n_estimators": (50, 100), "learning_rate": (0.3, 1.0)},
    "gradient-boosting": {"n_estimators": (50, 100), "max_depth": (2, 3)},
}
"""Settings that `tuned` tries, beside those of the kind itself."""
FEWEST_FOLDS, MOST_FOLDS = 2, 5
Settings = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class PerformanceModel:
    """Fitted to samples; equal samples, kind and seed give equal predictions."""

    samples: tuple[Sample, ...]
    kind: str = "forest"
    seed: int = 0
    settings: Settings = ()
    """Other than the kind's own."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name("performance model", self.kind, KINDS)
        if not self.samples:
            raise BadInputError("a performance model needs at least one sample, got none")
        if not any(sample.rate > 0 for sample in self.samples):
            raise BadInputError(f"all {len(self.samples)} samples have rate 0: nothing to learn from")

    def rates(self, sizes: Sequence[InstanceSize]) -> NDArray[np.float64]:
        """Predicted records/s of one instance of each size."""
        fitted = _fit(self)
        predicted = fitted.regressor.predict(fitted.scaled(sizes)) * fitted.largest_rate
        return np.asarray(np.maximum(predicted, 0.0), dtype=float)

    def rate(self, size: InstanceSize) -> float:
        return float(self.rates([size])[0])

    def known_rates(self, sizes: Sequence[InstanceSize]) -> list[float]:
        """As sampled where a size was sampled; as predicted elsewhere. A forest does not pass through its samples."""
        sampled = {_resources(sample.size): sample.rate for sample in self.samples}
        return [
            sampled.get(_resources(size), rate) for size, rate in zip(sizes, self.rates(sizes).tolist(), strict=True)
        ]

    def corrected(self, seen: Sequence[Sample], *, tolerance: float = 0.15) -> PerformanceModel:
        """Refit if production contradicts the model, else the same model.

        Contradiction: the median of seen / known is off by more than `tolerance`. What was seen replaces the
        samples of its sizes; the other samples are scaled by that median, the best guess until they are taken anew.
        """
        usable = [sample for sample in seen if sample.rate > 0]
        if not usable:
            return self
        known = self.known_rates([sample.size for sample in usable])
        factor = statistics.median(
            sample.rate / max(expected, 1e-9) for sample, expected in zip(usable, known, strict=True)
        )
        if abs(factor - 1) <= tolerance:
            return self
        replaced = {_resources(sample.size) for sample in usable}
        scaled = [
            sample.model_copy(update={"rate": sample.rate * factor})
            for sample in self.samples
            if _resources(sample.size) not in replaced
        ]
        return PerformanceModel((*scaled, *usable), self.kind, self.seed, self.settings)


@dataclass(frozen=True)
class TunedModel:
    """The best of a grid search, and the error of its predictions of samples it had not seen (null: too few)."""

    model: PerformanceModel
    rmse: float | None
    tried: int


def tuned(samples: Sequence[Sample], kinds: Sequence[str] = ("forest",), seed: int = 0) -> TunedModel:
    """Search the grids of these kinds by cross-validation, up to five folds; ties go to what is listed first.

    Errors are relative to the largest rate. With fewer than four samples nothing can be held out: the kind's own
    settings then.
    """
    plain = PerformanceModel(tuple(samples), kinds[0], seed)
    if len(samples) < 2 * FEWEST_FOLDS:
        return TunedModel(plain, None, 1)
    tried = [
        (_cross_validated(candidate), candidate)
        for kind in kinds
        for candidate in _candidates(PerformanceModel(tuple(samples), kind, seed))
    ]
    rmse, best = min(tried, key=lambda one: one[0])
    return TunedModel(best, rmse, len(tried))


def _candidates(model: PerformanceModel) -> list[PerformanceModel]:
    grid = GRIDS.get(model.kind, {})
    chosen = [tuple(zip(grid, values, strict=True)) for values in product(*grid.values())] if grid else []
    return [model, *(replace(model, settings=settings) for settings in chosen)]


def _cross_validated(model: PerformanceModel) -> float:
    """RMSE over all samples, each predicted by a model that had not seen its fold; equal sizes are in one fold."""
    sizes = sorted({_resources(sample.size) for sample in model.samples})
    folds = min(MOST_FOLDS, len(sizes))
    if folds < FEWEST_FOLDS:
        return float("inf")
    fold_of = {size: number % folds for number, size in enumerate(sizes)}
    predicted: list[float] = []
    truth: list[float] = []
    for fold in range(folds):
        seen = tuple(one for one in model.samples if fold_of[_resources(one.size)] != fold)
        held = [one for one in model.samples if fold_of[_resources(one.size)] == fold]
        predicted += replace(model, samples=seen).rates([one.size for one in held]).tolist()
        truth += [one.rate for one in held]
    return errors(predicted, truth).rmse


@dataclass(frozen=True)
class Errors:
    """Of rates relative to the largest true one."""

    rmse: float
    mae: float


def errors(predicted: Sequence[float], truth: Sequence[float]) -> Errors:
    largest = max(truth)
    off = (np.asarray(predicted, dtype=float) - np.asarray(truth, dtype=float)) / largest
    return Errors(rmse=float(np.sqrt(np.mean(off**2))), mae=float(np.mean(np.abs(off))))


@dataclass(frozen=True)
class _Regression:
    regressor: Any
    low: NDArray[np.float64]
    span: NDArray[np.float64]
    largest_rate: float

    def scaled(self, sizes: Sequence[InstanceSize]) -> NDArray[np.float64]:
        return (np.array([_resources(size) for size in sizes]) - self.low) / self.span


@lru_cache(maxsize=64)
def _fit(model: PerformanceModel) -> _Regression:
    """Fitting is a pure function of the samples, so it is done once for equal ones."""
    inputs = np.array([_resources(sample.size) for sample in model.samples])
    rates = np.array([sample.rate for sample in model.samples])
    low = inputs.min(axis=0)
    span = np.where(np.ptp(inputs, axis=0) > 0, np.ptp(inputs, axis=0), 1.0)
    largest = float(rates.max())
    regressor = KINDS[model.kind](model.seed)
    if model.settings:
        regressor.set_params(**dict(model.settings))
    regressor.fit((inputs - low) / span, rates / largest)
    return _Regression(regressor, low, span, largest)


def _resources(size: InstanceSize) -> tuple[float, float]:
    return (size.cpu_cores, size.memory_mb)
