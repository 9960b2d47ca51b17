"""Random jobs and what an engine might report of them: any shape, any metric missing, extremes included.

Hypothesis draws the size of the job and of the run, which is what shrinks well; a seeded generator fills in the
metrics, which is fifty times faster than drawing each.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from sluice.model import Observation, OperatorMetrics


def _share(chance: random.Random) -> float:
    return chance.choice([0.0, 1.0, chance.random(), chance.random()])


def _rate(chance: random.Random) -> float:
    return chance.choice([0.0, 1e-300, 1e12, *(chance.uniform(0, 5e6) for _ in range(6))])


def _change(chance: random.Random) -> float:
    return chance.choice([0.0, -1e12, 1e12, *(chance.uniform(-1e6, 1e6) for _ in range(6))])


def _seconds(chance: random.Random) -> float:
    return chance.choice([0.0, 1e5, chance.uniform(0, 600)])


_METRICS: dict[str, Callable[[random.Random], float]] = {
    "input_rate": _rate,
    "output_rate": _rate,
    "true_input_rate": _rate,
    "true_output_rate": _rate,
    "busy": _share,
    "backpressure": _share,
    "idle": _share,
    "cpu": lambda chance: 4 * _share(chance),
    "lag": _rate,
    "lag_rate": _change,
    "arrival_rate": _rate,
    "buffer_usage": _share,
    "latency_s": _seconds,
    "io_rate": _rate,
    "net_rate": _rate,
    "state_bytes": _rate,
    "batch_s": _seconds,
    "batch_interval_s": lambda chance: chance.uniform(0.1, 600),
}


def _metrics(chance: random.Random, successors: list[str], missing: float) -> dict[str, Any]:
    found: dict[str, Any] = {"parallelism": chance.randint(1, 40)}
    found |= {name: value(chance) for name, value in _METRICS.items() if chance.random() > missing}
    if successors and chance.random() > missing:
        found["output_rates"] = {to: _rate(chance) for to in successors if chance.random() > missing}
    return found


@st.composite
def random_runs(draw: st.DrawFn) -> list[Observation]:
    """A few windows of one job, parallelism changing as it likes."""
    size, windows = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    missing = draw(st.sampled_from([0.0, 0.2, 0.8]))
    chance = random.Random(draw(st.integers(0, 2**32)))
    names = [f"op{index}" for index in range(size)]
    edges = [(names[i], names[j]) for i in range(size) for j in range(i + 1, size) if chance.random() < 0.5]
    time_s, run = 0.0, []
    for _ in range(windows):
        interval_s = chance.choice([1.0, 15.0, 600.0])
        time_s += interval_s * chance.choice([1.0, 1.0, 30.0])
        operators = {name: _metrics(chance, [to for start, to in edges if start == name], missing) for name in names}
        data = {"time_s": time_s, "interval_s": interval_s, "operators": operators, "edges": edges}
        run.append(Observation.model_validate(data))
    return run


def steady_run(windows: int = 6, load: float = 900.0) -> list[Observation]:
    """A chain that is fully measured and somewhat too small for its load."""
    metrics = {
        "input_rate": 800.0,
        "output_rate": 800.0,
        "true_input_rate": 842.1,
        "true_output_rate": 842.1,
        "busy": 0.95,
        "backpressure": 0.0,
        "idle": 0.05,
        "cpu": 0.85,
        "lag": 20_000.0,
        "lag_rate": load - 800.0,
        "buffer_usage": 0.9,
        "batch_s": 2.0,
        "batch_interval_s": 1.0,
    }
    source = OperatorMetrics.model_validate({"parallelism": 2, "arrival_rate": load, **metrics, "backpressure": 0.4})
    mapper = OperatorMetrics.model_validate({"parallelism": 3, **metrics, "lag": None, "lag_rate": None})
    return [
        Observation(
            time_s=60.0 * (window + 1),
            interval_s=60.0,
            operators={"source": source, "map": mapper},
            edges=(("source", "map"),),
        )
        for window in range(windows)
    ]


def unmeasured(windows: int = 3) -> list[Observation]:
    """Only the parallelism is known."""
    bare = OperatorMetrics(parallelism=3)
    return [
        Observation(
            time_s=60.0 * (window + 1),
            interval_s=60.0,
            operators={"source": bare, "map": bare, "sink": bare},
            edges=(("source", "map"), ("map", "sink")),
        )
        for window in range(windows)
    ]
