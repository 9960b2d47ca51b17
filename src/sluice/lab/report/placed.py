"""Planned and actual placement of a run as one picture: a box per worker, planned instances above, what ran below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from sluice.journal.results import CycleReport
from sluice.lab.report.placement import COLOURS, FREE
from sluice.model import Placement, WorkerMetrics

BOX_W, BOX_H, GAP = 232, 112, 16
PER_ROW = 4


def planned_and_actual(reports: Sequence[CycleReport]) -> str | None:
    """The last window in which placed tasks ran, as SVG; null if no task was placed."""
    found: tuple[Placement, Mapping[str, WorkerMetrics], float] | None = None
    for earlier, report in zip([None, *reports], reports, strict=False):
        seen = report.cycle.observation
        # what ran in a window was placed by the target before it
        placement = (earlier or report).cycle.target.placement
        if seen.placement and seen.placement.placed and placement is not None:
            found = (placement, seen.workers, report.cycle.time_s)
    if found is None:
        return None
    placement, workers, time_s = found
    placed = sum(one.cycle.observation.placement.placed for one in reports if one.cycle.observation.placement)
    followed = sum(one.cycle.observation.placement.followed for one in reports if one.cycle.observation.placement)
    return _svg(
        placement, workers, f"{followed:,} of {placed:,} tasks ran where planned; shown: window to {time_s:.0f} s"
    )


def _svg(placement: Placement, workers: Mapping[str, WorkerMetrics], sentence: str) -> str:
    operators = sorted({name for one in workers.values() for name in one.source_tasks} | placement.parallelism.keys())
    paint = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(operators)}
    batches = {
        name: sum(one.source_tasks.get(name, 0) for one in workers.values())
        / max(1, placement.parallelism.get(name, 1))
        for name in operators
    }
    per_row = max(1, min(len(workers), PER_ROW))
    rows = -(-len(workers) // per_row)
    width = max(per_row * (BOX_W + GAP) + GAP, 960)
    height = rows * (BOX_H + GAP) + 76
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        "font-family='system-ui,sans-serif' font-size='12' role='img'>",
        f"<title>{escape(sentence)}</title><rect width='100%' height='100%' fill='white'/>",
    ]
    for number, (name, seen) in enumerate(workers.items()):
        x, y = GAP + number % per_row * (BOX_W + GAP), GAP + number // per_row * (BOX_H + GAP)
        planned = {operator: float(count) for operator, count in placement.tasks.get(name, {}).items()}
        ran = {
            operator: count / batches[operator] for operator, count in seen.source_tasks.items() if batches[operator]
        }
        busy = "" if seen.busy is None else f", {seen.busy:.0%} busy"
        parts.append(
            f"<rect x='{x}' y='{y}' width='{BOX_W}' height='{BOX_H}' rx='6' fill='#fafafa' stroke='#999'/>"
            f"<text x='{x + 12}' y='{y + 20}' font-weight='600'>{escape(name)}, {seen.slots} slots{busy}</text>"
        )
        parts += _bar("planned", planned, seen.slots, paint, x + 12, y + 34)
        parts += _bar("ran", ran, seen.slots, paint, x + 12, y + 72)
    top = rows * (BOX_H + GAP) + 34
    for number, (name, colour) in enumerate(paint.items()):
        x = GAP + number * (width - 2 * GAP) // max(1, len(paint))
        parts.append(f"<rect x='{x}' y='{top - 11}' width='14' height='14' rx='2' fill='{colour}'/>")
        parts.append(f"<text x='{x + 20}' y='{top}'>{escape(name)}</text>")
    parts.append(f"<text x='{GAP}' y='{height - 12}' fill='#555'>{escape(sentence)}</text></svg>")
    return "".join(parts)


def _bar(
    title: str, instances: Mapping[str, float], slots: int, paint: Mapping[str, str], x: float, y: float
) -> list[str]:
    """A stretch per operator, as long as its instances of the worker's slots."""
    full = BOX_W - 90
    unit = full / max(slots, sum(instances.values()), 1)
    parts = [
        f"<text x='{x}' y='{y + 13}'>{title}</text>",
        f"<rect x='{x + 56}' y='{y}' width='{full}' height='18' rx='2' fill='{FREE}'/>",
    ]
    left = x + 56
    for name, count in instances.items():
        tip = f"<title>{escape(name)}: {count:.3g} instances {title}</title>"
        parts.append(
            f"<rect x='{left:.1f}' y='{y}' width='{count * unit:.1f}' height='18' fill='{paint[name]}'>{tip}</rect>"
        )
        left += count * unit
    return parts
