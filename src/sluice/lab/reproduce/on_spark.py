"""A few tables of the papers on Spark itself, time compressed: real batches, topics and rescales, paced slots.

Rates and slot rates are scaled alike, so slots and counts of actions compare with the papers'; latencies and minutes do
not, for the workload's time runs faster than that of batches. Every run is a cell of a bench in `out`: what is there
already is not run again, so a table can be measured in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from sluice.errors import BadInputError, unknown_name
from sluice.journal.records import Choice
from sluice.lab.bench.bench import run_benches
from sluice.lab.bench.cell import Result, runs_at_a_time
from sluice.lab.bench.grid import Setting, grid
from sluice.lab.report.export import file_name
from sluice.lab.reproduce import conttune_figures, kanis_figures
from sluice.lab.reproduce.base import Report, Row, Table, Verdict, figure, order, shown
from sluice.lab.reproduce.conttune_runs import METHODS, TUNING_TIMES
from sluice.lab.reproduce.dragster import PHASES, SQUARE, TIMES_2
from sluice.lab.reproduce.kanis import as_written
from sluice.lab.series import Series

QUIET_SHARE = 0.25
"""A stage is settled if nothing is changed in its last part."""
TUNED = ("DS2", "Dhalion", "Dragster", "ContTune 0", "ContTune 3", "ours, alpha 3")
DRAGSTER = {
    "Dhalion": "dhalion:scale_down_use=0.8",
    "saddle point": "dragster",
    "gradient": "dragster:method=gradient",
}
NOT_IN_TIME = "time is compressed"


@dataclass(frozen=True, kw_only=True)
class SparkRuns:
    """How runs on Spark are made; topics are bounded, or backpressure would never be seen."""

    out: Path
    seeds: int = 3
    duration_s: float = 600.0
    interval_s: float = 10.0
    slots: int = 40
    topic_bound_records: int = 20_000
    processes: int = 1
    """Runs at a time; paced slots sleep most of the time."""

    def results(self, pipeline: str, workload: str, policies: Mapping[str, Choice]) -> dict[str, list[Result]]:
        """By label, one result per seed."""
        spark: dict[str, Setting] = {"slots": self.slots, "topic_bound_records": self.topic_bound_records}
        benches = {
            self.out / file_name(pipeline, workload, label): grid(
                [Choice.parse_text(pipeline)],
                [Choice.parse_text(workload)],
                [policy],
                range(self.seeds),
                engine="spark",
                duration_s=self.duration_s,
                interval_s=self.interval_s,
                guards={"max_slots": self.slots},
                spark=spark,
            )
            for label, policy in policies.items()
        }
        # a folder of its own per policy: tables that share runs find them there
        found = run_benches(benches, processes=self.processes, series_for_all=True)
        return dict(zip(policies, found.values(), strict=True))


def spark_tables(paper: str) -> tuple[str, ...]:
    return tuple(TABLES.get(paper, {}))


def run_on_spark(paper: str, table: str, how: SparkRuns, report: Report) -> Table:
    if paper not in TABLES:
        raise BadInputError(f"{paper} has no table that runs on Spark; those that have: {', '.join(TABLES)}")
    if table not in TABLES[paper]:
        raise unknown_name(f"table of {paper} on Spark", table, spark_tables(paper))
    report(f"{how.seeds} seeds of {how.duration_s:g} s each, kept in {how.out}")
    return TABLES[paper][table](how)


def _kanis(name: str, how: SparkRuns) -> Table:
    printed = kanis_figures.TABLES[name]
    known = {label: found for label, found in printed.rows.items() if found is not None}
    results = how.results(printed.pipeline, printed.workload, {label: as_written(label) for label in known})
    rows: list[Row] = []
    for label, found in known.items():
        for column, metric in enumerate(kanis_figures.COLUMNS):
            ours = fmean(float(getattr(result.summary, metric)) for result in results[label])
            compare: Callable[..., Row] = figure if metric in ("avg_slots", "max_slots") else shown
            note = {} if compare is figure else {"note": NOT_IN_TIME}
            rows.append(compare(f"{label}: {metric}", found[column], round(ours, 3), **note))
    for metric in ("avg_slots", "avg_latency_s"):
        column = kanis_figures.COLUMNS.index(metric)
        paper = {label: found[column] for label, found in known.items()}
        ours_by_label = {label: [float(getattr(r.summary, metric)) for r in results[label]] for label in known}
        rows.append(order(f"order by {metric}", paper, ours_by_label))
    return Table(name=name, title=f"{printed.title}, on Spark", rows=tuple(rows), notes=_notes(how, results))


def _settling(how: SparkRuns) -> Table:
    rows = []
    every: dict[str, list[Result]] = {}
    for pipeline, printed in kanis_figures.SETTLED.items():
        known = {policy: minutes for policy, minutes in printed.items() if minutes is not None}
        results = how.results(pipeline, "convergence", {policy: as_written(policy) for policy in known})
        every |= {f"{pipeline} {policy}": found for policy, found in results.items()}
        for policy, minutes in known.items():
            for number, (start, end) in enumerate(((10 / 90, 50 / 90), (50 / 90, 1.0))):
                times = [_settled(_series(result), start, end, how.duration_s) for result in results[policy]]
                settled = sum(found is not None for found in times)
                alike = (minutes[number] is None) == (2 * settled <= len(times))
                rows.append(
                    Row(
                        what=f"{pipeline} {policy}, stage {number + 1}",
                        paper="40+" if minutes[number] is None else f"{minutes[number]:g}",
                        ours=f"settles in {settled} of {len(times)} runs",
                        verdict=Verdict.CLAIM_HOLDS if alike else Verdict.DIFFERS,
                        note="" if alike else "cause not known",
                    )
                )
    return Table(name="7.19", title="settling on a constant load, on Spark", rows=tuple(rows), notes=_notes(how, every))


def _tuning(how: SparkRuns) -> Table:
    policies = {method: Choice(name=METHODS[method][0], settings=dict(METHODS[method][1])) for method in TUNED}
    rows: list[Row] = []
    every: dict[str, list[Result]] = {}
    for name, pipeline in (("WordCount", "wordcount"), ("Q1", "q1")):
        results = how.results(pipeline, "permutation", policies)
        every |= {f"{pipeline} {method}": found for method, found in results.items()}
        counts = {m: [r.summary.rescales / TUNING_TIMES for r in found] for m, found in results.items()}
        column = conttune_figures.NAMES.index(name)
        paper = {m: conttune_figures.RECONFIGURATIONS[m][column] for m in TUNED if m in conttune_figures.MEANS}
        rows.append(order(f"order, {name}", paper, {method: counts[method] for method in paper}))
        rows += [figure(f"{m}, {name}", paper.get(m), round(fmean(counts[m]), 2)) for m in TUNED]
    return Table(
        name="4a", title="reconfigurations per tuning time, on Spark", rows=tuple(rows), notes=_notes(how, every)
    )


def _purposes(how: SparkRuns) -> Table:
    methods = ("DS2", "ContTune 3", "ours, alpha 3")
    policies = {method: Choice(name=METHODS[method][0], settings=dict(METHODS[method][1])) for method in methods}
    results = how.results("wordcount", "permutation", policies)
    rows = []
    for what, by_method in conttune_figures.WORDCOUNT.items():
        for method in methods:
            counts = [_changes(_series(result)) for result in results[method]]
            chosen = {"all": 0, "to ": 1, "of ": 2}[what[:3]]
            paper = fmean(by_method[method]) if method in by_method else None
            rows.append(figure(f"{method}, {what}, mean", paper, round(fmean(found[chosen] for found in counts), 1)))
    return Table(
        name="7", title="WordCount: reconfigurations by purpose, on Spark", rows=tuple(rows), notes=_notes(how, results)
    )


def _phases(how: SparkRuns) -> Table:
    policies = {method: Choice.parse_text(text) for method, text in DRAGSTER.items()}
    results = how.results("wordcount", SQUARE, policies)
    rows: list[Row] = []
    for number, label in enumerate(PHASES):
        start, end = number / len(PHASES), (number + 1) / len(PHASES)
        times = {m: [_settled(_series(r), start, end, how.duration_s) for r in found] for m, found in results.items()}
        settled = {m: [t for t in found if t is not None] for m, found in times.items()}
        whole = {m: found for m, found in settled.items() if len(found) == how.seeds}
        for method, found in settled.items():
            ours = f"{median(found):.0f} s, {len(found)} of {how.seeds} runs" if found else "not converged"
            rows.append(shown(f"{label}: {method}", TIMES_2[method][number], ours, note=NOT_IN_TIME))
        if len(whole) > 1:
            rows.append(order(f"{label}: order by time", {m: float(TIMES_2[m][number]) for m in whole}, whole))
    return Table(
        name="2", title="WordCount under changing load, on Spark", rows=tuple(rows), notes=_notes(how, results)
    )


def _series(result: Result) -> Series:
    if result.series is None:
        raise BadInputError(f"run {result.cell.key} was kept without its time line; give another --out")
    return result.series


def _settled(series: Series, start: float, end: float, duration_s: float) -> float | None:
    """Seconds from a stage's start to its last action; null if that lies in its last part."""
    began_s, ended_s = start * duration_s, end * duration_s
    times = [mark.time_s for mark in series.actions if began_s < mark.time_s <= ended_s]
    last_s = max(times, default=began_s)
    return None if last_s > ended_s - QUIET_SHARE * (ended_s - began_s) else last_s - began_s


def _changes(series: Series) -> tuple[int, int, int]:
    """Actions, those after which there were more slots, and the others."""
    slots = dict(zip(series.time_s, series.total_slots, strict=True))
    times = sorted(slots)
    grown = 0
    for mark in series.actions:
        later = [slots[time_s] for time_s in times if time_s > mark.time_s]
        earlier = [slots[time_s] for time_s in times if time_s <= mark.time_s]
        grown += bool(later and earlier and later[0] > earlier[-1])
    return len(series.actions), grown, len(series.actions) - grown


def _notes(how: SparkRuns, results: Mapping[str, Sequence[Result]]) -> tuple[str, ...]:
    return (
        f"Spark on this machine, {how.seeds} seeds of {how.duration_s:g} s, "
        f"{runs_at_a_time(result.side_by_side for found in results.values() for result in found)}; slots are paced by "
        f"the operators' curves, topics bounded at {how.topic_bound_records:,} records",
    )


TABLES: Mapping[str, Mapping[str, Callable[[SparkRuns], Table]]] = {
    "conttune": {"4a": _tuning, "7": _purposes},
    "dragster": {"2": _phases},
    "kanis": {"7.9": lambda how: _kanis("7.9", how), "7.10": lambda how: _kanis("7.10", how), "7.19": _settling},
}
