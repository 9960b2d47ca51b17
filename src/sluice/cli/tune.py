"""`sluice tune`: Try a policy's parameters on several loads and seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sluice.cli.app import app
from sluice.cli.bench import Names, On, Processes, narrow_table, run_with_progress
from sluice.cli.durations import parse_seconds
from sluice.cli.listings import AsJson
from sluice.journal.records import Choice
from sluice.lab.bench.grid import grid
from sluice.lab.report.figures import narrow
from sluice.lab.tune import LATE_WEIGHT, Variant, parse_range, rank, variants


@app.command("tune")
def tune(
    policy: Annotated[str, typer.Argument(help="The policy whose parameters are varied; see 'sluice policies'.")],
    over: Annotated[
        list[str], typer.Option("--over", metavar="KEY=VALUES", help="key=0.5,0.6,0.7 or key=0.5..0.9:5. Repeatable.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the search; the same folder again resumes it.")],
    pipeline: Annotated[Names, typer.Option(help="Repeatable; default: q1 and q11, as in the thesis.")] = None,
    workload: Annotated[Names, typer.Option(help="Repeatable; default: cosine, as in the thesis.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds: 0, 1, 2, ...")] = 5,
    at_most: Annotated[
        int | None, typer.Option("--random", min=1, help="Try only so many combinations, chosen at random.")
    ] = None,
    late_weight: Annotated[float, typer.Option(min=0, help="Price of lateness in the score.")] = LATE_WEIGHT,
    slo: Annotated[
        float, typer.Option(parser=parse_seconds, metavar="TIME", help="Latency objective, e.g. 30 or 30s.")
    ] = 30.0,
    on: On = None,
    processes: Processes = None,
    as_json: AsJson = False,
) -> None:
    """Try a policy's parameters on several loads and seeds.

    The best comes first. The score is the cost against a planner that knows the load, plus --late-weight times the
    share of time above the latency objective. A star marks settings that no other beats in both.

    Example: sluice tune ds2 --over over_provisioning=1.0,1.2,1.4 --out runs/tune-ds2
    """
    ranges = dict(parse_range(text) for text in over)
    cells = grid(
        [Choice.parse_text(text) for text in pipeline or ["q1", "q11"]],
        [Choice.parse_text(text) for text in workload or ["cosine"]],
        variants(policy, ranges, at_most),
        range(seeds),
        slo_s=slo,
    )
    results = run_with_progress(cells, out, on=on, processes=processes, quiet=as_json)
    found = rank([result.row for result in results], late_weight)
    if as_json:
        print(json.dumps([variant.to_data() for variant in found], indent=2))
    else:
        Console().print(_table(found, late_weight))


def _table(found: list[Variant], late_weight: float) -> Table:
    title = f"score = cost + {late_weight:g} x share above the objective; lower is better"
    table = narrow_table("", "settings", "score", "cost", "late", "slots", "latency s", "to default", title=title)
    table.columns[1].overflow = "fold"
    for figures in table.columns[2:]:
        figures.no_wrap = True
    for variant in found:
        table.add_row(
            "*" if variant.unbeaten else "",
            variant.policy.partition(":")[2].replace(",", " ") or "as it is",
            narrow(variant.score),
            narrow(variant.cost_ratio),
            narrow(variant.slo_violation_ratio),
            narrow(variant.avg_slots),
            narrow(variant.avg_latency_s),
            narrow(variant.difference) if variant.difference else "default",
        )
    return table
