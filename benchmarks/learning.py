"""How long a decision of the learning policies takes: 20 operators, 200 samples each, every process fitted anew.

The same processes fitted by scikit-learn in the same run are the yardstick. CPU time and wall time are both printed:
on a busy machine only the first says something about the code.

python -m benchmarks.learning [--short]
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from sluice.learning.gaussian_process import GaussianProcess, one_thread
from sluice.learning.history import SAMPLES_PER_PARALLELISM, History
from sluice.model import Observation
from sluice.protocol import Policy, policies

OPERATORS = 20
SAMPLES = 200
LIMIT_MS = 200.0


def samples(seed: int, largest: int) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    x = rng.integers(1, largest + 1, SAMPLES)
    y = 1000.0 * x**0.9 * (1 + 0.02 * rng.standard_normal(SAMPLES))
    return x.tolist(), y.tolist()


def memory(largest: int) -> dict[str, object]:
    """As a policy would have it after 200 windows of every operator, as evenly spread as its history keeps them."""
    histories = {}
    for number in range(OPERATORS):
        kept: dict[int, tuple[float, ...]] = {}
        for x, y in zip(*samples(number, largest), strict=True):
            kept[int(x)] = (*kept.get(int(x), ()), y)[-SAMPLES_PER_PARALLELISM:]
        histories[f"op{number}"] = History(kept).to_data()
    return {"history": histories}


def observation(load: float, speed: float) -> Observation:
    names = [f"op{number}" for number in range(OPERATORS)]
    metrics = {
        "parallelism": 10,
        "input_rate": load,
        "output_rate": load,
        "busy": load / (1000.0 * speed * 10**0.9),
        "lag": 0.0,
        "lag_rate": 0.0,
    }
    operators = {name: dict(metrics) for name in names}
    operators[names[0]]["arrival_rate"] = load
    return Observation.model_validate(
        {
            "time_s": 60.0,
            "interval_s": 60.0,
            "operators": operators,
            "edges": list(itertools.pairwise(names)),
        }
    )


def measured_ms(work: Callable[[int], object], repeats: int) -> tuple[float, float]:
    """Smallest CPU time and wall time of one call."""
    cpu, wall = [], []
    for repeat in range(repeats + 1):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        work(repeat)
        cpu.append(1e3 * (time.process_time() - cpu_start))
        wall.append(1e3 * (time.perf_counter() - wall_start))
    return min(cpu[1:]), min(wall[1:])


def decision(policy: Policy, largest: int, repeats: int, first_speed: float) -> tuple[float, float]:
    learned = memory(largest)
    # the operator speeds differ from call to call: each brings new samples, so no fit is found in a cache
    seen = [observation(4000.0, speed=first_speed + 0.001 * repeat) for repeat in range(repeats + 1)]
    return measured_ms(lambda repeat: policy.decide(seen[repeat], learned), repeats)


def our_fit(largest: int, repeat: int) -> object:
    return GaussianProcess.fit(*samples(100 + repeat, largest))


def scikit_learn_fit(largest: int, repeat: int) -> object:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    x, y = samples(100 + repeat, largest)
    kernel = ConstantKernel(1.0) * RBF(8.0) + WhiteKernel(0.01)
    regressor = GaussianProcessRegressor(kernel, normalize_y=True)
    with warnings.catch_warnings(), one_thread(SAMPLES):
        warnings.simplefilter("ignore")
        return regressor.fit(np.array(x)[:, None], np.array(y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="fewer repeats")
    repeats = 2 if parser.parse_args().short else 8
    for name, settings, largest, speed in (
        ("conttune", {}, 80, 1.00),
        ("dragster", {"max_parallelism": 80}, 80, 1.02),
        ("dragster", {}, 10, 1.04),
    ):
        cpu, wall = decision(policies.create(name, settings), largest, repeats, speed)
        print(
            f"{name}, {OPERATORS} operators x {SAMPLES} samples at 1..{largest}: {cpu:.0f} ms CPU, {wall:.0f} ms wall "
            f"({cpu / LIMIT_MS:.2f} of the {LIMIT_MS:.0f} ms allowed)"
        )
    for largest in (10, 80):
        ours, _ = measured_ms(partial(our_fit, largest), repeats)
        theirs, _ = measured_ms(partial(scikit_learn_fit, largest), repeats)
        print(f"one fit of {SAMPLES} samples at 1..{largest}: scikit-learn / ours = {theirs / ours:.0f} (CPU time)")


if __name__ == "__main__":
    main()
