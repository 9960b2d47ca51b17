"""What the clairvoyant planner would have used of a run that is on record: where load and capacities are known."""

from __future__ import annotations

from functools import lru_cache

from pydantic import ValidationError

from sluice.errors import SluiceError
from sluice.journal.records import RunHeader
from sluice.lab.bench.cell import oracle
from sluice.lab.bench.grid import Cell
from sluice.lab.pipelines import pipelines
from sluice.lab.workloads import workloads

LONGEST_S = 200_000.0
"""Some two days: planning longer runs takes longer than anybody waits for a page."""


def planned_slot_seconds(header: bytes, until_s: float) -> float | None:
    """From the header of a journal, up to a time of the run; null for what cannot be planned.

    A journal may come from anywhere: only what is registered by name is built, and no file that it names is opened.
    """
    found = _plan(header)
    if found is None or until_s > found[0]:
        return None
    _, steps = found
    ends_s = [*(time_s for time_s, _ in steps[1:]), float("inf")]
    return sum(
        slots * max(0.0, min(end_s, until_s) - start_s) for (start_s, slots), end_s in zip(steps, ends_s, strict=True)
    )


@lru_cache(maxsize=32)
def _plan(header: bytes) -> tuple[float, tuple[tuple[float, int], ...]] | None:
    """The run's duration, and slots from each time on."""
    try:
        run = RunHeader.model_validate_json(header)
        if not _is_known(run):
            return None
        assert run.workload is not None
        cell = Cell(
            pipeline=run.pipeline,
            workload=run.workload,
            policy=run.policy,
            seed=run.seed,
            duration_s=run.duration_s,
            interval_s=run.interval_s,
            speedup=run.speedup,
            slo_s=run.slo_s or 30.0,
            guards=run.guards,
            simulator=run.settings.get("simulator", {}),
        )
        plan = oracle(cell.case_key).plan
    except (ValidationError, SluiceError, ValueError, TypeError, ArithmeticError, MemoryError):
        return None
    return run.duration_s or 0.0, tuple((time_s, configuration.slots) for time_s, configuration in plan.steps)


def _is_known(run: RunHeader) -> bool:
    known = run.engine == "sim" and run.workload is not None and "unplanned" not in run.settings
    named = (
        run.pipeline.name in pipelines.names() and run.workload is not None and run.workload.name in workloads.names()
    )
    opens_files = run.workload is not None and "path" in run.workload.settings
    return known and named and not opens_files and run.duration_s is not None and run.duration_s <= LONGEST_S
