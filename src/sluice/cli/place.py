"""`sluice place`: Place tasks on workers so that no worker is overloaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice.cli.app import app
from sluice.cli.listings import AsJson
from sluice.cli.settings import parse_settings
from sluice.errors import BadInputError
from sluice.model import Cluster, Worker
from sluice.placement import PlacementRequest, PlacementResult, placers
from sluice.placement.request import read_placement, read_profile, together

EXIT_NO_PLAN = 1


@app.command("place")
def place_command(
    profiles: Annotated[
        list[Path],
        typer.Argument(metavar="PROFILE.json...", help="Profiled queries; several are placed together."),
    ],
    workers: Annotated[int, typer.Option(min=1, help="Number of workers.")] = 4,
    slots: Annotated[str, typer.Option(help="Slots of every worker, or one number per worker: 8,8,4,4.")] = "8",
    strategy: Annotated[str, typer.Option(help="Placement strategy; see 'sluice strategies'.")] = "caps",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Parameter of the strategy, e.g. seed=3.")
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Only count the distinct plans, workers being alike.")] = False,
    present: Annotated[
        Path | None, typer.Option(help="Where tasks are now: of equal plans, take the one that moves fewest.")
    ] = None,
    pinned: Annotated[Path | None, typer.Option(help="Tasks that must stay, as {worker: {operator: tasks}}.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the plan into this .svg or .html file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Place tasks on workers so that no worker is overloaded.

    It balances cpu, state access and network. Costs are 0 for a perfectly even cluster and 1 for the heaviest worker
    possible. Workers are named w0, w1, ...

    Example: sluice place q1.json --workers 4 --slots 8 --picture plan.html

    Exit code 1 if there is no plan: too few slots, or thresholds (--set cpu=0.1) that no plan keeps.
    """
    profile = together([read_profile(path) for path in profiles], [path.stem for path in profiles])
    request = profile.request(
        _cluster(workers, slots),
        present=read_placement(present) if present else None,
        pinned=read_placement(pinned) if pinned else None,
    )
    if count:
        _show_count(request, as_json)
        return
    placed = placers.create(strategy, parse_settings(settings or ())).place(request)
    if picture and placed.feasible:
        from sluice.lab.report.placement import write_picture

        write_picture(request, placed, picture)
    _show(request, placed, strategy, as_json)
    if not placed.feasible:
        raise typer.Exit(EXIT_NO_PLAN)


def _cluster(workers: int, slots: str) -> Cluster:
    """`8` for all, or `8,8,4`: one number per worker."""
    try:
        sizes = [int(part) for part in slots.split(",")]
    except ValueError:
        raise BadInputError(f"--slots takes a number or one per worker (8,8,4), got {slots!r}") from None
    if min(sizes) < 1:
        raise BadInputError(f"--slots must be at least 1, got {slots!r}")
    if len(sizes) == 1:
        return Cluster.uniform(workers, sizes[0])
    if len(sizes) != workers:
        raise BadInputError(f"--slots has {len(sizes)} numbers for --workers {workers}: {slots!r}")
    return Cluster(workers=tuple(Worker(name=f"w{number}", slots=size) for number, size in enumerate(sizes)))


def _show_count(request: PlacementRequest, as_json: bool) -> None:
    from sluice.placement.enumeration import count_plans
    from sluice.placement.problem import build

    plans = count_plans(build(request))
    if as_json:
        print(json.dumps({"plans": plans}))
        return
    Console().print(f"{plans:,} distinct plans for {request.tasks} tasks in {request.cluster.slots} slots")


def _show(request: PlacementRequest, placed: PlacementResult, strategy: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_as_data(placed, strategy), indent=2))
        return
    console = Console()
    if not placed.feasible:
        console.print(f"[red]no plan[/red]: {placed.reason}")
        return
    from sluice.lab.report.placement import terminal_picture

    console.print(terminal_picture(request, placed))
    console.print(f"[dim]{strategy}: {placed.explored:,} alternatives in {placed.elapsed_s * 1000:.1f} ms[/dim]")


def _as_data(placed: PlacementResult, strategy: str) -> dict[str, Any]:
    return {
        "feasible": placed.feasible,
        "strategy": strategy,
        "cost": placed.costs.to_data() if placed.costs else None,
        "thresholds": placed.thresholds.to_data() if placed.thresholds else None,
        "placement": placed.placement.tasks if placed.placement else None,
        "elapsed_s": placed.elapsed_s,
        "explored": placed.explored,
        "gap": placed.gap,
        "moved": placed.moved,
        "reason": placed.reason,
    }
