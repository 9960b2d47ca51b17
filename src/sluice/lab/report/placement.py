"""A placement as a picture: workers as boxes, a square per task, a load bar per dimension."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from sluice.errors import BadInputError
from sluice.model import Placement
from sluice.placement import PlacementRequest, PlacementResult
from sluice.placement.problem import DIMENSIONS, build

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#997700", "#004488", "#bb5566", "#558866")
"""Colour-blind readers can distinguish them (Paul Tol's bright and high-contrast sets)."""
FREE = "#e6e6e6"
BAR_WIDTH = 18


@dataclass(frozen=True)
class WorkerView:
    """What is drawn of a worker; `fill` is its load by dimension against the largest any worker may get."""

    name: str
    slots: int
    tasks: dict[str, int]
    fill: dict[str, float]
    even: dict[str, float]


def worker_views(request: PlacementRequest, placement: Placement) -> list[WorkerView]:
    """Bars are full at the worst load a worker can get, and marked where a perfectly even cluster would be."""
    problem = build(request)
    loads = problem.worker_costs(problem.counts_of(placement)) + problem.arrays.offset[:, None]
    worst = 1.0 + problem.arrays.offset
    views = {
        worker.name: WorkerView(
            name=worker.name,
            slots=worker.slots,
            tasks={name: count for name, count in placement.tasks.get(worker.name, {}).items() if count},
            fill={name: float(loads[d, column] / worst[d]) for d, name in enumerate(DIMENSIONS)},
            even={name: float(problem.arrays.offset[d] / worst[d]) for d, name in enumerate(DIMENSIONS)},
        )
        for column, worker in enumerate(problem.workers)
    }
    return [views[worker.name] for worker in request.cluster.workers]


def colours(request: PlacementRequest) -> dict[str, str]:
    return {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(request.graph.names)}


def terminal_picture(request: PlacementRequest, placed: PlacementResult) -> RenderableType:
    """Boxes side by side as the terminal's width allows."""
    assert placed.placement is not None
    paint = colours(request)
    panels = [_panel(view, paint) for view in worker_views(request, placed.placement)]
    legend = Text("  ").join(Text.assemble(("■ ", paint[name]), name) for name in request.graph.names)
    return Group(Columns(panels), legend, Text(placed.reason, style="dim"))


def _panel(view: WorkerView, paint: dict[str, str]) -> Panel:
    squares = Text()
    for name, count in view.tasks.items():
        squares.append("■" * count, style=paint[name])
    squares.append("·" * (view.slots - sum(view.tasks.values())), style="dim")
    lines: list[Text] = [squares]
    for name, share in view.fill.items():
        full = round(share * BAR_WIDTH)
        bar = Text("█" * full + "░" * (BAR_WIDTH - full), style=_heat(share, view.even[name]))
        lines.append(Text.assemble(f"{name:3} ", bar, f" {share:4.0%}"))
    return Panel(Group(*lines), title=view.name, width=BAR_WIDTH + 14)


def _heat(share: float, even: float) -> str:
    """Green near the even share, red far above it."""
    excess = (share - even) / (1.0 - even) if even < 1.0 else 0.0
    return "green" if excess <= 0.2 else "yellow" if excess <= 0.5 else "red"


def write_picture(request: PlacementRequest, placed: PlacementResult, path: Path) -> None:
    """An SVG, or an HTML page around it, by the file's ending."""
    if path.suffix not in (".svg", ".html"):
        raise BadInputError(f"--picture takes a file ending in .svg or .html, got {str(path)!r}")
    assert placed.placement is not None
    drawing = svg(request, placed)
    if path.suffix == ".html":
        drawing = (
            "<!doctype html><html lang='en'><meta charset='utf-8'><title>Placement</title>"
            "<body style='margin:24px;font-family:system-ui,sans-serif'>"
            f"{drawing}</body></html>\n"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawing, encoding="utf-8")


def svg(request: PlacementRequest, placed: PlacementResult) -> str:
    assert placed.placement is not None
    views = worker_views(request, placed.placement)
    paint = colours(request)
    per_row = min(len(views), 4)
    squares_per_line = 8
    lines = max(-(-view.slots // squares_per_line) for view in views)
    box_w, box_h = 232, 44 + 24 * lines + 3 * 22
    rows = -(-len(views) // per_row)
    width = max(per_row * (box_w + 16) + 16, 960)
    legend_lines = -(-len(paint) // 4)
    height = rows * (box_h + 16) + 56 + 22 * legend_lines
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        "font-family='system-ui,sans-serif' font-size='12' role='img'>",
        f"<title>{escape(placed.reason)}</title><rect width='100%' height='100%' fill='white'/>",
    ]
    for number, view in enumerate(views):
        x, y = 16 + number % per_row * (box_w + 16), 16 + number // per_row * (box_h + 16)
        parts += _box(view, paint, x, y, box_w, box_h, squares_per_line)
    top = rows * (box_h + 16) + 30
    for number, (name, colour) in enumerate(paint.items()):
        x, y = 16 + number % 4 * (width - 32) // 4, top + number // 4 * 22
        parts.append(f"<rect x='{x}' y='{y - 11}' width='14' height='14' rx='2' fill='{colour}'/>")
        parts.append(f"<text x='{x + 20}' y='{y}'>{escape(name)}</text>")
    parts.append(f"<text x='16' y='{height - 12}' fill='#555'>{escape(placed.reason)}</text></svg>")
    return "".join(parts)


def _box(view: WorkerView, paint: dict[str, str], x: float, y: float, w: float, h: float, per_line: int) -> list[str]:
    held = [paint[name] for name, count in view.tasks.items() for _ in range(count)]
    title = f"{escape(view.name)}, {len(held)} of {view.slots} slots"
    parts = [
        f"<rect x='{x}' y='{y}' width='{w}' height='{h}' rx='6' fill='#fafafa' stroke='#999'/>",
        f"<text x='{x + 12}' y='{y + 20}' font-weight='600'>{title}</text>",
    ]
    names = [name for name, count in view.tasks.items() for _ in range(count)]
    for slot in range(view.slots):
        colour = held[slot] if slot < len(held) else FREE
        tip = f"<title>{escape(names[slot])}</title>" if slot < len(names) else ""
        sx, sy = x + 12 + slot % per_line * 26, y + 30 + slot // per_line * 24
        parts.append(f"<rect x='{sx}' y='{sy}' width='20' height='20' rx='3' fill='{colour}'>{tip}</rect>")
    top = y + h - 3 * 22
    for number, (name, share) in enumerate(view.fill.items()):
        by, full = top + number * 22, w - 110
        shade = {"green": "#228833", "yellow": "#ccbb44", "red": "#cc3311"}[_heat(share, view.even[name])]
        mark = x + 46 + full * view.even[name]
        parts += [
            f"<text x='{x + 12}' y='{by + 10}'>{name}</text>",
            f"<rect x='{x + 46}' y='{by}' width='{full}' height='12' rx='2' fill='{FREE}'/>",
            f"<rect x='{x + 46}' y='{by}' width='{full * min(share, 1.0):.1f}' height='12' rx='2' fill='{shade}'/>",
            f"<line x1='{mark:.1f}' x2='{mark:.1f}' y1='{by - 2}' y2='{by + 14}' stroke='black'/>",
            f"<text x='{x + w - 12}' y='{by + 10}' text-anchor='end'>{share:.0%}</text>",
        ]
    return parts
