"""ContTune (PVLDB 16, 2023): tables 4a to 8 and figures 5 to 7 on queries with their real graphs.

The paper's figures are held against ContTune without what we added (`PAPER_MODE`); ours stands beside it in every
table, and table `added` has each addition alone, on every curve. What is assumed of the jobs: `conttune_jobs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean

import numpy as np

from sluice.errors import unknown_name
from sluice.lab.bench.statistics import estimate
from sluice.lab.report.figures import figure as with_interval
from sluice.lab.reproduce import conttune_figures as printed
from sluice.lab.reproduce.base import Report, Row, Table, claim, figure, order, reproduction, shown
from sluice.lab.reproduce.conttune_figures import NAMES
from sluice.lab.reproduce.conttune_jobs import MAPPER_CURVE, QUERIES, REDEPLOY_S, Curve
from sluice.lab.reproduce.conttune_runs import TUNING_TIMES, Trial, Tuned, tune
from sluice.lab.reproduce.simulated import in_parallel
from sluice.lab.simulator.capacity import read_curve
from sluice.lab.workloads.trace import read_trace
from sluice.registry import parameter

PAPERS_METHODS = ("Dhalion", "DS2", "Big + DS2", "Dragster", "ContTune 0", "ContTune 3")
OURS = ("ours, alpha 0", "ours, alpha 3", "rates passed along alone")
ADDED = (
    "DS2",
    "ContTune 3",
    "process of ours alone",
    "new loads alone",
    "forgetting alone",
    "rates passed along alone",
    "ours, alpha 3",
)
LATENCY_TIE_S = 1.0
ALL_PERMUTATIONS = 6
"""Of the paper: its sums are over so many."""
ASSUMED = "graphs, units and cores are the paper's; selectivities and the smaller operators are assumed"
Runs = Mapping[tuple[str, str], Sequence[Tuned]]
"""Method, query -> one run per permutation."""


@reproduction("conttune")
@dataclass(frozen=True, kw_only=True)
class ContTuneTables:
    """Reconfigurations, cores, backlog and time of ContTune, DS2, Dhalion, Dragster and random search."""

    permutations: int = parameter(6, "orders of the ten load levels per query, the paper's six")
    seeds: int = parameter(10, "orders of the levels in table 'added'")
    noise: float = parameter(
        0.098, "deviation of an operator's speed per second; 1.27 % over a minute, as all published repeats pooled"
    )
    second_curve: str = parameter("", "JSON file with a second capacity curve, for table 'added'")
    traces: str = parameter("", "folder with video-streaming.csv and etl.csv, for figure 7")

    def __post_init__(self) -> None:
        for name in ("permutations", "seeds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.noise < 1:
            raise ValueError(f"noise must be in [0, 1), got {self.noise}")

    def tables(self) -> tuple[str, ...]:
        return tuple(self._parts())

    def run(self, table: str, report: Report) -> Table:
        if table not in self._parts():
            raise unknown_name("table of conttune", table, self.tables())
        return self._parts()[table](report)

    def _parts(self) -> Mapping[str, Callable[[Report], Table]]:
        return {
            "4a": self._reconfigurations,
            "4b": self._largest_cores,
            "4c": self._running_time,
            "4d": self._tuning_time,
            "4e": self._backlog,
            "4f": self._core_seconds,
            "5": self._cores_at_ten,
            "6": self._catching_up,
            "7": self._wordcount,
            "8": self._acquisition,
            "figure5": self._latency,
            "figure6": self._second_round,
            "figure7": self._real_workloads,
            "added": self._added,
        }

    def _runs(self, report: Report) -> Runs:
        report(f"{self.permutations} permutations of all methods and queries, once for all tables")
        return _shared_runs(self.permutations, self.noise)

    def _reconfigurations(self, report: Report) -> Table:
        runs = self._runs(report)
        per_tuning = {key: [run.reconfigurations / TUNING_TIMES for run in found] for key, found in runs.items()}
        for name in NAMES:
            per_tuning["Random", name] = self._random(name)
        methods = (*PAPERS_METHODS, "Random")
        rows = [
            figure(f"{method}, mean", printed.MEANS[method], round(fmean(_pooled(per_tuning, method)), 2))
            for method in methods
        ]
        rows += [
            order(
                f"order, {name}",
                {method: printed.RECONFIGURATIONS[method][i] for method in methods},
                {method: per_tuning[method, name] for method in methods},
            )
            for i, name in enumerate(NAMES)
        ]
        rows += _every_query(printed.RECONFIGURATIONS, per_tuning, methods)
        notes = (f"reconfigurations per tuning time, {self.permutations} permutations of {TUNING_TIMES}", ASSUMED)
        return Table(name="4a", title="reconfigurations per tuning time", rows=tuple(rows), notes=notes)

    def _largest_cores(self, report: Report) -> Table:
        largest = _each(self._runs(report), lambda run: float(run.largest_cores))
        most = {key: [max(values)] for key, values in largest.items()}
        rows = _every_query(printed.LARGEST_CORES, most, PAPERS_METHODS, unit="cores", fitted=("Dragster",))
        notes = ("Dragster's largest parallelism is set to the table's, and therefore fitted", ASSUMED)
        return Table(name="4b", title="largest number of cores", rows=tuple(rows), notes=notes)

    def _running_time(self, report: Report) -> Table:
        excess = _each(self._runs(report), lambda run: ALL_PERMUTATIONS * (run.tuning_s + run.catching_up_s))
        rows = _every_query(printed.BEYOND_LOAD_S, excess, PAPERS_METHODS, unit="s", same_as="4d")
        notes = ("what exceeds the 72,000 s of load: the sum of tables 4d and 6, and counted there", ASSUMED)
        return Table(name="4c", title="running time beyond the load's own", rows=tuple(rows), notes=notes)

    def _tuning_time(self, report: Report) -> Table:
        spent = _each(self._runs(report), lambda run: ALL_PERMUTATIONS * run.tuning_s)
        rows = _every_query(printed.TUNING_S, spent, PAPERS_METHODS, unit="s", fitted=PAPERS_METHODS)
        notes = (f"a reconfiguration takes {REDEPLOY_S:g} s here, fitted to this table and 4a", ASSUMED)
        return Table(name="4d", title="tuning time of all permutations", rows=tuple(rows), notes=notes)

    def _backlog(self, report: Report) -> Table:
        shares = _each(self._runs(report), lambda run: 100.0 * run.backlog_share)
        rows = _orders(printed.BACKLOG_PERCENT, shares)
        rows += _every_query(printed.BACKLOG_PERCENT, shares, PAPERS_METHODS, unit="%")
        return Table(name="4e", title="records waiting at a reconfiguration", rows=tuple(rows), notes=(ASSUMED,))

    def _core_seconds(self, report: Report) -> Table:
        spent = _each(self._runs(report), lambda run: ALL_PERMUTATIONS * run.core_seconds)
        rows = _orders(printed.CORE_SECONDS, spent)
        rows += _every_query(printed.CORE_SECONDS, spent, PAPERS_METHODS, unit="core s")
        return Table(name="4f", title="core-seconds of all permutations", rows=tuple(rows), notes=(ASSUMED,))

    def _cores_at_ten(self, report: Report) -> Table:
        cores = _each(self._runs(report), lambda run: float(run.cores_at_ten))
        methods, fitted = ("DS2", "ContTune 3"), ("ContTune 3",)
        rows = _every_query(printed.CORES_AT_TEN, cores, methods, unit="cores", fitted=fitted, tolerance=0.05)
        notes = ("within 5 %; the curves are scaled to ContTune's cores, which are therefore fitted",)
        return Table(name="5", title="cores when the largest load comes again", rows=tuple(rows), notes=notes)

    def _catching_up(self, report: Report) -> Table:
        late = _each(self._runs(report), lambda run: ALL_PERMUTATIONS * run.catching_up_s)
        rows = _orders(printed.CATCHING_UP_S, late)
        rows += _every_query(printed.CATCHING_UP_S, late, PAPERS_METHODS, unit="s")
        notes = ("ours: time in which records waited more than 5 s to be read", ASSUMED)
        return Table(name="6", title="time of processing what was buffered", rows=tuple(rows), notes=notes)

    def _wordcount(self, report: Report) -> Table:
        runs = self._runs(report)
        count: dict[str, Callable[[Tuned], int]] = {
            "all reconfigurations": lambda run: run.reconfigurations,
            "to end backpressure": lambda run: run.growing,
            "of over-provisioned jobs": lambda run: run.shrinking,
        }
        rows: list[Row] = []
        for what, by_method in printed.WORDCOUNT.items():
            for method, paper in by_method.items():
                ours = [count[what](run) for run in runs[method, "WordCount"]]
                rows.append(figure(f"{method}, {what}, mean", fmean(paper), round(fmean(ours), 1)))
            extended = fmean(count[what](run) for run in runs["ours, alpha 3", "WordCount"])
            rows.append(shown(f"ours, alpha 3, {what}, mean", None, round(extended, 1), note="with what we added"))
        notes = ("means: the paper prints three of its permutations and not which they are", ASSUMED)
        return Table(name="7", title="WordCount: reconfigurations by purpose", rows=tuple(rows), notes=notes)

    def _acquisition(self, report: Report) -> Table:
        methods = {"DS2": "DS2", "expected improvement (eq. 4)": "eq. 4", "feasible mean (eq. 5)": "ContTune 3"}
        trials = [
            Trial(method, "Q1", seed, self.noise, knows_rates=True)
            for method in (*methods.values(), "ours, alpha 3")
            for seed in range(self.permutations)
        ]
        found = in_parallel(tune, trials, report)
        counts = {
            method: [
                float(run.reconfigurations) for trial, run in zip(trials, found, strict=True) if trial.method == method
            ]
            for method in (*methods.values(), "ours, alpha 3")
        }
        rows = [
            figure(label, printed.ACQUISITION[label], round(ALL_PERMUTATIONS * fmean(counts[method])))
            for label, method in methods.items()
        ]
        rows.append(order("order", printed.ACQUISITION, {label: counts[method] for label, method in methods.items()}))
        ours = round(ALL_PERMUTATIONS * fmean(counts["ours, alpha 3"]))
        rows.append(shown("ours, alpha 3", None, ours, note="with what we added"))
        return Table(
            name="8",
            title="reconfigurations on query 1 in six permutations, by acquisition function",
            rows=tuple(rows),
            notes=("real input rates known beforehand, no Big phase needed", "the paper's orders are not published"),
        )

    def _latency(self, report: Report) -> Table:
        runs = self._runs(report)
        rows = []
        for name in NAMES:
            p99 = {
                method: fmean(_p99(run.latencies_at_ten_s) for run in runs[method, name])
                for method in ("DS2", "ContTune 3", *OURS)
            }
            same = abs(p99["ContTune 3"] - p99["DS2"]) <= max(LATENCY_TIE_S, 0.25 * p99["DS2"])
            words = ", ".join(f"{method} {value:.1f} s" for method, value in p99.items())
            rows.append(claim(f"{name}: latency of ContTune as DS2's", "essentially the same", words, same))
        notes = ("99th percentile in the last five minutes of the largest load, the second time it comes",)
        return Table(name="figure5", title="latency at the end of tuning", rows=tuple(rows), notes=notes)

    def _second_round(self, report: Report) -> Table:
        runs = self._runs(report)
        rows = []
        for number in range(TUNING_TIMES // 2, TUNING_TIMES):
            found = {m: [run.per_level[number] for run in runs[m, "Q2"]] for m in ("DS2", "ContTune 3", *OURS)}
            cores = {m: fmean(run.level_cores[number] for run in runs[m, "Q2"]) for m in ("DS2", "ContTune 3")}
            words = ", ".join(f"{method} {fmean(counts):.2f}" for method, counts in found.items())
            fewer = fmean(found["ContTune 3"]) <= fmean(found["DS2"])
            rows.append(claim(f"tuning time {number + 1}: reconfigurations", "ContTune at most DS2's", words, fewer))
            words = ", ".join(f"{method} {value:.1f}" for method, value in cores.items())
            smaller = cores["ContTune 3"] <= cores["DS2"] + 1e-9
            rows.append(claim(f"tuning time {number + 1}: cores", "ContTune at most DS2's", words, smaller))
        title = "query 2, the latter ten tuning times, means of all permutations"
        return Table(name="figure6", title=title, rows=tuple(rows), notes=(ASSUMED,))

    def _real_workloads(self, report: Report) -> Table:
        rows = []
        methods = ("DS2", "ContTune 0", "ContTune 3", *OURS)
        for job, paper in printed.REAL_WORKLOADS.items():
            path = Path(self.traces) / f"{job}.csv"
            if not self.traces or not path.exists():
                rows.append(
                    shown(f"{job}: reconfigurations", "DS2 58" if "video" in job else "DS2 39", None, note="no trace")
                )
                continue
            rates = read_trace(path)
            shares = tuple((rates / rates.max()).tolist())
            trials = [
                Trial(method, "Q1", seed, self.noise, trace=shares)
                for method in methods
                for seed in range(self.permutations)
            ]
            found = list(zip(trials, in_parallel(tune, trials, report), strict=True))
            counts = {m: [float(run.reconfigurations) for trial, run in found if trial.method == m] for m in methods}
            rows.append(order(f"{job}: order", paper, {method: counts[method] for method in paper}))
            rows += [
                shown(f"{job}: {method}", paper.get(method), round(fmean(counts[method]), 1), note="another job")
                for method in methods
            ]
        notes = ("the published traces on query 1's graph and curve: the jobs themselves are not published",)
        return Table(name="figure7", title="reconfigurations on real workloads", rows=tuple(rows), notes=notes)

    def _added(self, report: Report) -> Table:
        curves: dict[str, Curve] = {"first curve": MAPPER_CURVE}
        if self.second_curve:
            curves["second curve"] = read_curve(self.second_curve).points
        rows = []
        for label, curve in curves.items():
            query = "Q1" if label == "first curve" else "Q2"
            points = tuple(curve.items())
            trials = [Trial(method, query, seed, self.noise, points) for method in ADDED for seed in range(self.seeds)]
            found = list(zip(trials, in_parallel(tune, trials, report), strict=True))
            for method in ADDED:
                own = [run for trial, run in found if trial.method == method]
                measured = {
                    "reconfigurations per tuning time": [run.reconfigurations / TUNING_TIMES for run in own],
                    "thousand core-seconds": [run.core_seconds / 1000 for run in own],
                    "seconds late": [run.catching_up_s for run in own],
                }
                rows += [
                    shown(f"{label}, {query}: {method}, {what}", None, with_interval(estimate(values)))
                    for what, values in measured.items()
                ]
        missing = () if self.second_curve else ("no second curve: give --set second_curve=FILE",)
        title = f"ContTune without and with what we added, per tuning time, {self.seeds} seeds"
        return Table(name="added", title=title, rows=tuple(rows), notes=missing)

    def _random(self, name: str) -> list[float]:
        """Trials until the one best parallelism of the largest operator is drawn, none drawn twice; per permutation."""
        random = np.random.default_rng(0)
        draws = random.integers(1, QUERIES[name].largest + 1, size=(self.permutations, TUNING_TIMES))
        return [float(value) for value in draws.mean(axis=1)]


@lru_cache(maxsize=1)
def _shared_runs(permutations: int, noise: float) -> Runs:
    """Most tables count other things in the same runs."""
    keys = [(method, name) for method in (*PAPERS_METHODS, *OURS) for name in NAMES]
    trials = [Trial(method, name, seed, noise) for method, name in keys for seed in range(permutations)]
    found = in_parallel(tune, trials, lambda _: None)
    return {key: found[i * permutations : (i + 1) * permutations] for i, key in enumerate(keys)}


def _each(runs: Runs, value: Callable[[Tuned], float]) -> dict[tuple[str, str], list[float]]:
    return {key: [value(run) for run in found] for key, found in runs.items()}


def _pooled(values: Mapping[tuple[str, str], Sequence[float]], method: str) -> list[float]:
    return [value for name in NAMES for value in values[method, name]]


def _orders(paper: printed.Printed, ours: Mapping[tuple[str, str], Sequence[float]]) -> list[Row]:
    return [
        order(
            f"order, {name}",
            {method: paper[method][i] for method in PAPERS_METHODS},
            {method: ours[method, name] for method in PAPERS_METHODS},
        )
        for i, name in enumerate(NAMES)
    ]


def _every_query(
    paper: printed.Printed,
    ours: Mapping[tuple[str, str], Sequence[float]],
    methods: Sequence[str],
    *,
    unit: str = "",
    fitted: Collection[str] = (),
    tolerance: float = 0.25,
    same_as: str = "",
) -> list[Row]:
    """Every printed figure, and beside them ours with what we added. `fitted` names methods calibrated on theirs."""
    rows = [
        figure(
            f"{method}, {name}",
            paper[method][i],
            float(f"{fmean(ours[method, name]):.4g}"),
            unit=unit,
            fitted=method in fitted,
            tolerance=tolerance,
            same_as=same_as,
        )
        for method in methods
        for i, name in enumerate(NAMES)
    ]
    return rows + [
        shown(
            f"{method}, {name}", None, float(f"{fmean(ours[method, name]):.4g}"), unit=unit, note="with what we added"
        )
        for method in OURS
        for name in NAMES
    ]


def _p99(latencies_s: Sequence[float]) -> float:
    return float(np.quantile(latencies_s, 0.99)) if latencies_s else 0.0
