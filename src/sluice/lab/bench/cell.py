"""One cell, run and scored. A pure function of the cell: where and when it runs changes nothing."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from sluice.control.engine import Engine
from sluice.control.guards import Guards
from sluice.errors import BadInputError
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
SESSION = "sluice bench"


class Result(Frozen):
    """What a cell came to; `problems` are the distinct things that went wrong on the way and were survived."""

    cell: Cell
    summary: Summary
    scores: Scores
    problems: tuple[str, ...] = ()
    series: Series | None = None
    side_by_side: int | None = None
    """On Spark: how many runs there were at a time on this machine. Null on the simulator, where it changes nothing."""

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
            "side_by_side": self.side_by_side,
        }


def run_cell(cell: Cell, *, with_series: bool = False, against_planner: bool = True, side_by_side: int = 1) -> Result:
    """Without the planner, cost and accuracy stay unknown, and a short bench is over sooner."""
    if cell.engine == "spark":
        return _run_on_spark(cell, with_series).model_copy(update={"side_by_side": side_by_side})
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


def threads_to_share(cells: Sequence[Cell]) -> int | None:
    """Of a Spark session that all of them can run in; null where none is on Spark, or one needs a session of its own.

    A broker, real-time mode and the like take settings of their own.
    """
    on_spark = {cell.pipeline.label: cell for cell in cells if cell.engine == "spark"}
    settings = {label: _spark_settings(cell) for label, cell in on_spark.items()}
    if not settings or not all(one.fits_any_session for one in settings.values()):
        return None
    from sluice.lab.spark_run import local_threads_needed

    return max(local_threads_needed(cell.spec(), settings[label]) for label, cell in on_spark.items())


@contextmanager
def shared_session(cells: Sequence[Cell]) -> Iterator[None]:
    """One Spark session for all that run on Spark, with threads for the largest; a warm JVM runs all but the first."""
    threads = threads_to_share(cells)
    if threads is None:
        yield
        return
    from sluice.spark.session import open_session

    with open_session(SESSION, threads=threads):
        yield


@cache
def keep_session(threads: int) -> None:
    """A session for as long as this process lives: that of a worker, which runs one cell after the other."""
    from sluice.spark.session import open_session

    atexit.register(open_session(SESSION, threads=threads).close)


def runs_at_a_time(counts: Iterable[int | None]) -> str:
    """In words; null is of runs kept before this was noted, which went one after the other."""
    known = sorted({count or 1 for count in counts})
    return "one run at a time" if known == [1] else f"{' or '.join(map(str, known))} runs at a time"


def check_side_by_side(cells: Sequence[Cell], processes: int) -> None:
    """Runs on Spark beside each other are those of slots that sleep, each with topics of its own."""
    if processes == 1:
        return
    for cell in {cell.pipeline.label: cell for cell in cells if cell.engine == "spark"}.values():
        if not getattr(cell.spec().pipeline, "paced", False):
            raise BadInputError(
                f"runs side by side need slots that sleep; those of {cell.pipeline.label} compute, and would take the "
                f"cores from each other: --processes must be 1, got {processes}"
            )
        if (topics := _spark_settings(cell).topics) is not None:
            raise BadInputError(
                f"runs side by side would share the topics on {topics}: --processes must be 1, got {processes}"
            )


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
