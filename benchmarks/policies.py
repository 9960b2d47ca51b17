"""How long one decision takes for a job of 500 operators, per policy, beside reading the observation it is made from.

python -m benchmarks.policies [--short] [--operators N] [--policy NAME ...]

The memory is that of an hour at one decision every 15 s, carried over, so windows and histories are full.
Times are CPU times: what else runs on the machine does not count.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import Any

from sluice.model import Observation
from sluice.protocol import EMPTY_MEMORY, Memory, policies

REACTIVE = ("dhalion", "ds2", "flink", "hpa-cpu", "hpa-varga", "spark-dra", "threshold")
LIMIT_MS = 10.0
WINDOW_S = 15.0


def job(operators: int, chance: random.Random) -> tuple[list[str], list[tuple[str, str]]]:
    """Layers of ten; everyone feeds one or two of the next layer, so there are fan-outs and joins."""
    names = [f"op{number}" for number in range(operators)]
    edges = {
        (names[number], names[successor])
        for number in range(operators)
        for successor in chance.sample(range(number // 10 * 10 + 10, number // 10 * 10 + 20), k=chance.randint(1, 2))
        if successor < operators
    }
    return names, sorted(edges)


def observation(names: list[str], edges: list[tuple[str, str]], time_s: float, chance: random.Random) -> dict[str, Any]:
    def metrics() -> dict[str, float]:
        rate, busy = chance.uniform(500, 2000), chance.uniform(0.2, 1.0)
        return {
            "parallelism": 4,
            "input_rate": rate,
            "output_rate": rate * 0.9,
            "busy": busy,
            "backpressure": chance.uniform(0, 1 - busy),
            "cpu": busy * 0.9,
            "lag": chance.uniform(0, 1e5),
            "lag_rate": chance.uniform(-500, 2000),
            "arrival_rate": rate * 1.1,
            "buffer_usage": chance.random(),
        }

    return {
        "time_s": time_s,
        "interval_s": WINDOW_S,
        "operators": {name: metrics() for name in names},
        "edges": edges,
    }


def milliseconds(name: str, observations: list[Observation], timed: int) -> list[float]:
    """Of the last `timed` decisions; those before them only fill the memory."""
    policy = policies.create(name)
    memory: Memory = EMPTY_MEMORY
    elapsed: list[float] = []
    for seen in observations:
        start = time.process_time()
        _, memory = policy.decide(seen, memory)
        elapsed.append((time.process_time() - start) * 1000)
    return elapsed[-timed:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a quarter of an hour instead of an hour")
    parser.add_argument("--operators", type=int, default=500)
    parser.add_argument("--policy", action="append", help="default: the reactive ones")
    options = parser.parse_args()

    chance = random.Random(1)
    names, edges = job(options.operators, chance)
    windows, timed = (60, 20) if options.short else (240, 60)
    raw = [observation(names, edges, WINDOW_S * (number + 1), chance) for number in range(windows)]
    start = time.process_time()
    observations = [Observation.model_validate(data) for data in raw]
    reading_ms = (time.process_time() - start) * 1000 / windows

    print(
        f"{options.operators} operators, {len(edges)} edges; reading and checking an observation: {reading_ms:.2f} ms"
    )
    print(f"{'policy':<14}{'median ms':>10}{'worst ms':>10}{'to reading':>12}{f'  under {LIMIT_MS:g} ms':>14}")
    for name in options.policy or REACTIVE:
        elapsed = milliseconds(name, observations, timed)
        median_ms = statistics.median(elapsed)
        verdict = "yes" if median_ms < LIMIT_MS else "NO"
        print(f"{name:<14}{median_ms:>10.2f}{max(elapsed):>10.2f}{median_ms / reading_ms:>11.2f}x{verdict:>14}")


if __name__ == "__main__":
    main()
