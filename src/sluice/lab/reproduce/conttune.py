"""ContTune (PVLDB 16, 2023), tables 4a and 8: reconfigurations per tuning time on six queries.

What is known of the paper's set-up: units of the load (its table 3), ten load levels in random order run twice, ten
minutes each, and the cores of the tuned operator at the highest level (its table 5). What is not: the capacity curves,
but for the mapper of query 1. Every query here is therefore a source, one tuned operator and a sink; the operator has
the published curve, scaled so that the cores of table 5 just carry the highest level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from sluice.control.guards import Guards
from sluice.errors import unknown_name
from sluice.lab.reproduce.base import Report, Row, Table, figure, order, reproduction, shown
from sluice.lab.reproduce.simulated import play, reconfigured
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator, SimulatorSettings, chain
from sluice.lab.simulator.capacity import CapacityTable
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, Policy, policies
from sluice.registry import parameter

LEVELS = 10
ROUNDS = 2
LEVEL_S = 600.0
INTERVAL_S = 60.0
TUNING_TIMES = LEVELS * ROUNDS

MAPPER_CAPACITY = {
    1: 529573,
    2: 966817,
    4: 1829696,
    6: 2535503,
    7: 2936889,
    8: 3118478,
    10: 3721099,
    13: 4624714,
    15: 4967828,
    20: 6350677,
    21: 6465250,
    25: 7089387,
    26: 7476392,
}
"""Of the query 1 mapper by parallelism, records/s, as published with the paper; at 1 the mean of five repeats."""


@dataclass(frozen=True)
class TunedQuery:
    """Load unit in records/s, cores needed at ten units (table 5), and ContTune's largest parallelism (table 4b)."""

    unit_rate: float
    cores: int
    largest: int


QUERIES = {
    "WordCount": TunedQuery(100e3, 13, 16),
    "Q1": TunedQuery(700e3, 25, 32),
    "Q2": TunedQuery(900e3, 23, 32),
    "Q3": TunedQuery(240e3, 18, 32),
    "Q5": TunedQuery(80e3, 22, 32),
    "Q8": TunedQuery(160e3, 10, 16),
}

PAPER_4A = {
    "Dhalion": {"WordCount": 3.08, "Q1": 5.36, "Q2": 4.97, "Q3": 3.84, "Q5": 5.59, "Q8": 3.61, "mean": 4.41},
    "DS2": {"WordCount": 1.78, "Q1": 2.29, "Q2": 2.29, "Q3": 1.49, "Q5": 3.34, "Q8": 3.21, "mean": 2.40},
    "Big + DS2": {"WordCount": 1.73, "Q1": 2.22, "Q2": 2.29, "Q3": 1.66, "Q5": 3.34, "Q8": 3.02, "mean": 2.37},
    "Dragster": {"WordCount": 2.75, "Q1": 3.85, "Q2": 3.85, "Q3": 2.75, "Q5": 4.95, "Q8": 3.85, "mean": 3.67},
    "ContTune 0": {"WordCount": 1.33, "Q1": 1.61, "Q2": 1.62, "Q3": 1.26, "Q5": 2.01, "Q8": 1.46, "mean": 1.55},
    "ContTune 3": {"WordCount": 1.16, "Q1": 1.32, "Q2": 1.28, "Q3": 1.18, "Q5": 1.55, "Q8": 1.26, "mean": 1.29},
    "Random": {"WordCount": 11.16, "Q1": 22.72, "Q2": 17.43, "Q3": 16.18, "Q5": 13.36, "Q8": 8.72, "mean": 14.93},
}
PAPER_8 = {"DS2": 275.0, "expected improvement (eq. 4)": 164.0, "feasible mean (eq. 5)": 151.0}

BECAUSE = {
    "Dhalion": "ours never settles: once healthy it divides by 1.2, and a window later it grows back; held to a busy "
    "share of 0.6 (scale_down_use) it takes 4 to 7",
    "Dragster": "one process per operator serves all loads here; theirs learns every input rate anew",
    "Big + DS2": "one tuned operator here: a wrong selectivity cannot mislead DS2 as on their windows and joins",
    "DS2": "one tuned operator here: a wrong selectivity cannot mislead DS2 as on their windows and joins",
    "Random": "drawn without repetition for the tuned operator alone",
}
ORDER_BECAUSE = "our Dragster shares one process over all loads, our Dhalion never settles"
NOISY = "without noise DS2 takes 205 here and both acquisition functions 164; how long the paper measured is unknown"
SAME_CURVE = "all six queries have the shape of the one published curve"


def tuned_job(query: TunedQuery, noise: float) -> SimulatedJob:
    """Source and sink are ample; a redeployment stops the whole job, as in Flink."""
    published = CapacityTable(MAPPER_CAPACITY)
    scale = 1.01 * LEVELS * query.unit_rate / published(query.cores)
    ample = Linear(2 * LEVELS * query.unit_rate)
    return SimulatedJob(
        operators=(
            SimulatedOperator(name="source", capacity=ample),
            SimulatedOperator(
                name="tuned", capacity=CapacityTable({p: scale * rate for p, rate in MAPPER_CAPACITY.items()})
            ),
            SimulatedOperator(name="sink", capacity=ample),
        ),
        edges=chain("source", "tuned", "sink"),
        settings=SimulatorSettings(
            buffer_records=int(query.unit_rate / 10), rescale="job", downtime_s=10.0, noise=noise
        ),
    )


@dataclass(frozen=True)
class KnowingRates:
    """A policy that starts with the real input rates known, as the paper did for its table 8."""

    inner: Policy
    memory: Mapping[str, Any]

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        return self.inner.decide(observation, memory or self.memory)


@reproduction("conttune")
@dataclass(frozen=True, kw_only=True)
class ContTuneTables:
    """Reconfigurations per tuning time, ContTune against DS2, Dhalion, Dragster and random search."""

    permutations: int = parameter(6, "orders of the ten load levels per query, the paper's six")
    noise: float = parameter(
        0.19, "deviation of an operator's speed from second to second; 2.5 % over a minute, as the published repeats"
    )

    def __post_init__(self) -> None:
        if self.permutations < 1:
            raise ValueError(f"permutations must be at least 1, got {self.permutations}")

    def tables(self) -> tuple[str, ...]:
        return ("4a", "8")

    def run(self, table: str, report: Report) -> Table:
        if table == "4a":
            return self._table_4a(report)
        if table == "8":
            return self._table_8(report)
        raise unknown_name("table of conttune", table, self.tables())

    def count(self, query: TunedQuery, policy: Policy, seed: int) -> int:
        """Reconfigurations in all tuning times of one permutation."""
        levels = np.tile(np.random.default_rng(seed).permutation(np.arange(1, LEVELS + 1)), ROUNDS)

        def curve(times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            at = np.clip((times_s / LEVEL_S).astype(np.int64), 0, levels.size - 1)
            return query.unit_rate * levels[at].astype(np.float64)

        cycles = play(
            tuned_job(query, self.noise),
            {"source": curve},
            policy,
            duration_s=TUNING_TIMES * LEVEL_S,
            interval_s=INTERVAL_S,
            guards=Guards(),
            seed=seed,
        )
        return sum(map(reconfigured, cycles))

    def _table_4a(self, report: Report) -> Table:
        ours: dict[str, dict[str, float]] = {}
        for method, make in METHODS.items():
            ours[method] = {}
            for name, query in QUERIES.items():
                report(f"{method} on {name}")
                counts = [self.count(query, make(query), seed) for seed in range(self.permutations)]
                ours[method][name] = fmean(counts) / TUNING_TIMES
        ours["Random"] = {name: self._random(query) for name, query in QUERIES.items()}
        for found in ours.values():
            found["mean"] = fmean(found.values())
        rows = [self._mean_row(method, ours[method]["mean"]) for method in PAPER_4A]
        for column in ("mean", *QUERIES):
            paper = {method: PAPER_4A[method][column] for method in PAPER_4A}
            mine = {method: ours[method][column] for method in PAPER_4A}
            rows.append(order(f"order, {column}", paper, mine, because=ORDER_BECAUSE))
        rows += [
            shown(f"{method}, {name}", PAPER_4A[method][name], round(ours[method][name], 2))
            for method in PAPER_4A
            for name in QUERIES
        ]
        notes = (
            f"reconfigurations per tuning time, {self.permutations} permutations of {TUNING_TIMES} tuning times each",
            SAME_CURVE,
        )
        return Table(name="4a", title="reconfigurations per tuning time", rows=tuple(rows), notes=notes)

    def _mean_row(self, method: str, ours: float) -> Row:
        return figure(
            f"{method}, mean", PAPER_4A[method]["mean"], round(ours, 2), because=BECAUSE.get(method, SAME_CURVE)
        )

    def _random(self, query: TunedQuery) -> float:
        """Trials until the one best parallelism of the tuned operator is drawn, none drawn twice."""
        random = np.random.default_rng(0)
        levels = range(self.permutations * TUNING_TIMES)
        return fmean(int(random.integers(1, query.largest + 1)) for _ in levels)

    def _table_8(self, report: Report) -> Table:
        query = QUERIES["Q1"]
        known = [
            {"loads": {"source": rate}, "rates": {"source": rate, "tuned": rate, "sink": rate}}
            for rate in (query.unit_rate, 2 * query.unit_rate)
        ]
        memory = {"levels": known, "p_max": 1}
        candidates: dict[str, Callable[[], Policy]] = {
            "DS2": lambda: METHODS["DS2"](query),
            "expected improvement (eq. 4)": lambda: KnowingRates(
                policies.create("conttune", {"acquisition": "expected-improvement"}), memory
            ),
            "feasible mean (eq. 5)": lambda: KnowingRates(policies.create("conttune"), memory),
        }
        ours: dict[str, float] = {}
        rows: list[Row] = []
        for name, make in candidates.items():
            report(name)
            counts = [self.count(query, make(), seed) for seed in range(self.permutations)]
            ours[name] = sum(counts) * 6 / self.permutations
            rows.append(replace_note(figure(name, PAPER_8[name], ours[name], because=NOISY), counts))
        rows.append(order("order", PAPER_8, ours))
        return Table(
            name="8",
            title="reconfigurations on query 1 in six permutations, by acquisition function",
            rows=tuple(rows),
            notes=("real input rates known beforehand, no Big phase needed", "the paper's orders are not published"),
        )


def replace_note(row: Row, counts: list[int]) -> Row:
    per_permutation = "per permutation: " + ", ".join(map(str, counts))
    return row.model_copy(update={"note": "; ".join(part for part in (row.note, per_permutation) if part)})


METHODS: Mapping[str, Callable[[TunedQuery], Policy]] = {
    "Dhalion": lambda _: policies.create("dhalion"),
    "DS2": lambda _: policies.create("ds2", {"over_provisioning": 1.0}),
    "Big + DS2": lambda _: policies.create("big-ds2", {"over_provisioning": 1.0}),
    "Dragster": lambda query: policies.create("dragster", {"max_parallelism": query.largest}),
    "ContTune 0": lambda _: policies.create("conttune", {"alpha": 0}),
    "ContTune 3": lambda _: policies.create("conttune", {"alpha": 3}),
}
