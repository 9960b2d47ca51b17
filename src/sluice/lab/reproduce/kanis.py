"""Kanis' thesis, chapter 7: parameters, workloads, queries and convergence, with several seeds instead of one run.

The thesis measured Flink on a cluster; we simulate a job calibrated on its DS2 tables (`pipelines/calibration.py`):
what tables 7.3 and 7.4 say of slots and mean latency is fitted, all else is held out. As written there: in health
Dhalion leaves 0.8 of the instances (4.2), DS2 acts whenever its result differs (6.7), topics forget after five minutes
(6.3.1). Every printed figure is judged; a run that crashed in the thesis has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from sluice.journal.records import Choice
from sluice.lab.bench.cell import Result, run_cell
from sluice.lab.bench.grid import Cell
from sluice.lab.pipelines import pipelines
from sluice.lab.reproduce.base import UNKNOWN_CAUSE, Report, Row, Table, Verdict, figure, order, reproduction, shown
from sluice.lab.reproduce.kanis_figures import (
    COLUMNS,
    DEFAULTS,
    INPUT_RATES,
    QUERIES,
    SETTLED,
    SETTLED_AT,
    TABLES,
    Figures,
)
from sluice.lab.reproduce.simulated import in_parallel
from sluice.lab.workloads.patterns import Cosine
from sluice.registry import parameter

TOLERANCE = 0.25
TICK_S = 1.0
"""Latencies that differ by less than the simulator's step do not differ."""
RETENTION_S = 300.0
THESIS_RULES: Mapping[str, Mapping[str, Any]] = {"dhalion": {"scale_down_rule": "subtract"}, "ds2": {"least_drop": 1}}
UNITS = dict(zip(COLUMNS, ("slots", "slots", "s", "s", "s", "actions"), strict=True))
WORDS = dict(
    zip(
        COLUMNS,
        ("mean slots", "most slots", "mean latency", "median latency", "95th percentile of latency", "scaling actions"),
        strict=True,
    )
)
FITTED = ("avg_slots", "max_slots", "avg_latency_s")
NOT_RUN = "not run in the thesis"


@reproduction("kanis")
@dataclass(frozen=True, kw_only=True)
class Kanis:
    """Kanis' thesis: tables 7.1 to 7.19 on the simulator, and figures 7.1 to 7.21 as pictures."""

    seeds: int = parameter(5, "runs per figure; the thesis has one")
    pictures: str = parameter("", "folder for slots and latency over time, one picture per table; none without")

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {self.seeds}")

    def tables(self) -> tuple[str, ...]:
        return (*TABLES, "7.17", "7.18", "7.19")

    def run(self, table: str, report: Report) -> Table:
        if table == "7.17":
            return _input_rates()
        if table == "7.18":
            return self._queries(report)
        if table == "7.19":
            return self._convergence(report)
        printed = TABLES[table]
        results = self._results(table, printed.pipeline, printed.workload, list(printed.rows), report, printed.initial)
        return Table(
            name=table,
            title=f"{printed.title}: paper (one run) and ours (mean of {self.seeds})",
            rows=tuple(_compare(table, printed.pipeline, printed.workload, printed.rows, results)),
            notes=(f"within {TOLERANCE:.0%}, latencies also within {TICK_S:g} s, the simulator's step",),
        )

    def _queries(self, report: Report) -> Table:
        rows: list[Row] = []
        for pipeline, printed in QUERIES.items():
            results = self._results("7.18", pipeline, _cosine(pipeline), list(printed), report)
            rows += _compare("7.18", pipeline, "cosine", printed, results, f"{pipeline} ")
        return Table(name="7.18", title=f"queries under the cosine, mean of {self.seeds}", rows=tuple(rows))

    def _convergence(self, report: Report) -> Table:
        rows = []
        for pipeline, printed in SETTLED.items():
            results = self._results("7.19", pipeline, "convergence", list(printed), report, initial=1)
            for policy, minutes in printed.items():
                for stage in (0, 1):
                    rows.append(_settled(f"{pipeline} {policy}, stage {stage + 1}", minutes, stage, results[policy]))
                if pipeline == "q1" and policy in SETTLED_AT:
                    rows += _settled_at(policy, [result.scores.stages[1] for result in results[policy]])
        return Table(
            name="7.19",
            title="minutes to settle on a constant load (40+: not within the stage)",
            rows=tuple(rows),
            notes=("settled: no scaling action in the last ten minutes of the stage; ours: median of the seeds",),
        )

    def _results(
        self,
        table: str,
        pipeline: str,
        workload: str,
        labels: Sequence[str],
        report: Report,
        initial: int | None = None,
    ) -> dict[str, list[Result]]:
        cells = [
            Cell(
                pipeline=Choice(name=pipeline),
                workload=Choice.parse_text(workload),
                policy=as_written(label),
                seed=seed,
                simulator={"retention_s": RETENTION_S},
                initial_parallelism=initial,
            )
            for label in labels
            for seed in range(self.seeds)
        ]
        run = partial(run_cell, against_planner=False, with_series=bool(self.pictures))
        found = in_parallel(run, cells, report)
        results = {label: found[i * self.seeds : (i + 1) * self.seeds] for i, label in enumerate(labels)}
        if self.pictures:
            from sluice.lab.reproduce.kanis_pictures import draw

            draw({label: runs[0] for label, runs in results.items()}, Path(self.pictures) / f"{table}-{pipeline}.png")
        return results


def as_written(label: str) -> Choice:
    choice = Choice.parse_text(label)
    return Choice(name=choice.name, settings={**THESIS_RULES.get(choice.name, {}), **choice.settings})


def _cosine(pipeline: str) -> str:
    """With the query's own bottom and noise (table 7.17)."""
    low, high, noise = INPUT_RATES[pipeline]
    return f"cosine:low={low / high},noise={noise / high}"


def _compare(
    table: str,
    pipeline: str,
    workload: str,
    printed: Mapping[str, Figures | None],
    results: Mapping[str, Sequence[Result]],
    prefix: str = "",
) -> list[Row]:
    values = {
        label: {name: [float(getattr(result.summary, name)) for result in results[label]] for name in COLUMNS}
        for label in printed
    }
    rows = []
    for label, found in printed.items():
        for column, name in enumerate(COLUMNS):
            what, ours, unit = f"{prefix}{label}: {WORDS[name]}", fmean(values[label][name]), UNITS[name]
            if found is None:
                rows.append(shown(what, None, round(ours, 3), unit=unit, note=NOT_RUN))
                continue
            first = first_printed(pipeline, workload, DEFAULTS.get(label, label), name, found[column])
            rows.append(
                figure(
                    what,
                    found[column],
                    round(ours, 3),
                    unit=unit,
                    tolerance=TOLERANCE,
                    least=TICK_S if unit == "s" else 0.0,
                    fitted=first in ("7.3", "7.4") and name in FITTED,
                    same_as="" if first in ("", table) else first,
                )
            )
    known = {label: found for label, found in printed.items() if found is not None}
    repeated = table == "7.18" and pipeline in ("q1", "q11")
    for name in ("avg_slots", "avg_latency_s") if len(known) > 1 else ():
        paper = {label: found[COLUMNS.index(name)] for label, found in known.items()}
        ours_by_label = {label: values[label][name] for label in known}
        same = {"q1": "7.9", "q11": "7.10"}[pipeline] if repeated else ""
        rows.append(order(f"{prefix}order by {WORDS[name]}", paper, ours_by_label, same_as=same))
    return rows


@cache
def first_printed(pipeline: str, workload: str, label: str, column: str, value: float) -> str:
    """The first table with this figure of this run; empty if no table of its own has it."""
    for name, table in TABLES.items():
        if (table.pipeline, table.workload) != (pipeline, workload):
            continue
        for known, found in table.rows.items():
            if DEFAULTS.get(known, known) == label and found and found[COLUMNS.index(column)] == value:
                return name
    return ""


def _settled(
    what: str, printed: tuple[float | None, float | None] | None, number: int, results: Sequence[Result]
) -> Row:
    """Settling or not is a yes or no; how fast is a figure where both settle."""
    found = [result.scores.stages[number].converged_s for result in results]
    settled = [seconds / 60 for seconds in found if seconds is not None]
    most = len(settled) * 2 > len(found)
    ours = f"{np.median(settled):.0f}" if most else "40+"
    ours += f" ({len(settled)} of {len(found)} seeds)"
    if printed is None:
        return shown(what, None, ours, unit="min", note=NOT_RUN)
    minutes = printed[number]
    if minutes is not None and most:
        return figure(what, minutes, round(float(np.median(settled)), 1), unit="min")
    alike = (minutes is None) != most
    return Row(
        what=what,
        paper="40+" if minutes is None else f"{minutes:g}",
        ours=ours,
        unit="min",
        verdict=Verdict.CLAIM_HOLDS if alike else Verdict.DIFFERS,
        note="" if alike else UNKNOWN_CAUSE,
    )


def _settled_at(policy: str, stages: Sequence[Any]) -> list[Row]:
    actions, slots, cpu = SETTLED_AT[policy]
    use = [stage.end_cpu for stage in stages if stage.end_cpu is not None]
    what = f"q1 {policy}, stage 2"
    return [
        figure(f"{what}: scaling actions", actions, fmean(stage.actions for stage in stages), unit="actions"),
        figure(f"{what}: slots when settled", slots, fmean(stage.end_slots for stage in stages), unit="slots"),
        figure(f"{what}: CPU use when settled", cpu, round(fmean(use), 3) if use else None),
    ]


def _input_rates() -> Table:
    """Of our own pipelines and patterns: a check of the set-up, all of it taken from the table."""
    rows = []
    for name, (low, high, noise) in INPUT_RATES.items():
        peak = pipelines.create(name).peak_rate
        pattern = Choice.parse_text(_cosine(name)).settings
        ours = {"smallest": float(pattern["low"]) * peak, "largest": peak, "noise": float(pattern["noise"]) * peak}
        for what, paper in (("smallest", low), ("largest", high), ("noise", noise)):
            rows.append(
                figure(f"{name}: {what}", paper, round(ours[what], 3), unit="records/s", tolerance=1e-6, fitted=True)
            )
    notes = (
        f"the pattern's own defaults are those of query 1: {Cosine().low:.3f} and {Cosine().noise:.3f} of the peak",
    )
    return Table(name="7.17", title="input rates of the cosine", rows=tuple(rows), notes=notes)
