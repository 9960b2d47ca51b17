"""One cell, run and scored. A pure function of the cell: where and when it runs changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sluice.control.engine import Engine
from sluice.control.guards import Guards
from sluice.journal.file import MemoryJournal
from sluice.lab.bench.grid import CLAIRVOYANT, Cell
from sluice.lab.run import RunSpec, run, simulated_engine
from sluice.lab.scores import Oracle, Scores, score
from sluice.lab.series import Series, run_series
from sluice.lab.summary import Summary, summarise
from sluice.model import Target
from sluice.model.base import Frozen
from sluice.registry import build

if TYPE_CHECKING:
    from sluice.lab.spark_run import SparkSettings

MOST_SLOTS = 200
"""For a run without a limit of its own."""
WARM_UP_S = 30.0


class Result(Frozen):
    """What a cell came to; `problems` are the distinct things that went wrong on the way and were survived."""

    cell: Cell
    summary: Summary
    scores: Scores
    problems: tuple[str, ...] = ()
    series: Series | None = None

    @property
    def row(self) -> dict[str, Any]:
        """One flat row of the results table."""
        scores = self.scores.to_data()
        del scores["stages"]
        return {
            "engine": self.cell.engine,
            "pipeline": self.cell.pipeline.label,
            "workload": self.cell.workload.label,
            "policy": self.cell.policy.label,
            "seed": self.cell.seed,
            **self.summary.to_data(),
            **scores,
            "stages": len(self.scores.stages),
            "converged_stages": self.scores.converged_stages,
            "converge_s": self.scores.converge_s,
            "converge_actions": self.scores.converge_actions,
            "problems": len(self.problems),
        }


def run_cell(cell: Cell, *, with_series: bool = False, against_planner: bool = True) -> Result:
    """Without the planner, cost and accuracy stay unknown, and a short bench is over sooner."""
    if cell.engine == "spark":
        return _run_on_spark(cell, with_series)
    spec = cell.spec()
    foreseen = cell.policy.name == CLAIRVOYANT
    foresight = oracle(cell.case_key) if against_planner or foreseen else None
    engine, initial = simulated_engine(spec)
    if foreseen and foresight:
        from sluice.lab.clairvoyant import ClairvoyantPolicy

        # it knows when to act, so nothing but the slots there are limits it
        spec = replace(spec, policy=ClairvoyantPolicy(foresight.plan), guards=Guards(max_slots=spec.guards.max_slots))
        initial = Target(parallelism=dict(foresight.plan.steps[0][1].parallelism))
    return _result(cell, spec, engine, initial, foresight, with_series)


def _run_on_spark(cell: Cell, with_series: bool) -> Result:
    """In life's own time, one after the other; what the capacities are nobody knows, so there is no planner."""
    from sluice.lab.spark_run import spark_engine, working_folder

    spec = cell.spec()
    with working_folder(None, resume=False) as folder:
        engine, initial = spark_engine(spec, _spark_settings(cell), folder)
        return _result(cell, spec, engine, initial, None, with_series)


def _spark_settings(cell: Cell) -> SparkSettings:
    from sluice.lab.spark_run import SparkSettings

    slots = build(Guards, cell.guards, "guards").max_slots or SparkSettings.slots
    return build(SparkSettings, {"slots": slots, **cell.spark}, "spark")


@contextmanager
def shared_session(cells: Sequence[Cell]) -> Iterator[None]:
    """One Spark session for all that run on Spark, with threads for the largest; a warm JVM runs all but the first.

    Where one of them needs settings of its own (a broker, real-time mode), every run has its own session.
    """
    on_spark = {cell.pipeline.label: cell for cell in cells if cell.engine == "spark"}
    settings = {label: _spark_settings(cell) for label, cell in on_spark.items()}
    if not settings or not all(one.fits_any_session for one in settings.values()):
        yield
        return
    from sluice.lab.spark_run import local_threads_needed
    from sluice.spark.session import open_session

    threads = max(local_threads_needed(cell.spec(), settings[label]) for label, cell in on_spark.items())
    with open_session("sluice bench", threads=threads):
        yield


def warm_up(cell: Cell) -> None:
    """A short run on Spark, thrown away: the first one in a JVM has latencies a few times those of the next."""
    run_cell(cell.model_copy(update={"duration_s": WARM_UP_S}))


def _result(
    cell: Cell, spec: RunSpec, engine: Engine, initial: Target, foresight: Oracle | None, with_series: bool
) -> Result:
    journal = MemoryJournal()
    run(spec, engine, initial, journal)
    reports = journal.reports()
    problems = {report.cycle.problem for report in reports if report.cycle.problem}
    return Result(
        cell=cell,
        summary=summarise(reports, journal.end(), cell.slo_s),
        scores=score(reports, foresight),
        problems=tuple(sorted(problems)),
        series=run_series(reports) if with_series else None,
    )


@lru_cache(maxsize=4)
def oracle(case_key: str) -> Oracle:
    """Shared by all cells of a case: planning costs more than a run."""
    from sluice.lab.clairvoyant import demand, plan

    case = Cell.model_validate_json(case_key)
    spec = case.spec()
    needs = demand(spec)
    return Oracle(needs, plan(needs, slo_s=case.slo_s, max_slots=spec.guards.max_slots or MOST_SLOTS))
