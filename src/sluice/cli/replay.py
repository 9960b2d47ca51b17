"""`sluice replay`: Say what other policies would have made of a past run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sluice.cli.app import app
from sluice.cli.durations import parse_seconds
from sluice.cli.listings import AsJson
from sluice.cli.settings import parse_settings
from sluice.errors import BadInputError
from sluice.journal.explain import clock
from sluice.journal.file import read_runs
from sluice.journal.records import Choice
from sluice.journal.results import RunLog
from sluice.lab.replay import Figures, PastRun, Replay, objective_of, replay
from sluice.protocol import create_aiming

SHOWN = 8


@app.command("replay")
def replay_command(
    journal: Annotated[Path, typer.Argument(help="journal.jsonl of a run or an attachment, or the folder it is in.")],
    policy: Annotated[
        list[str],
        typer.Option("--policy", metavar="NAME[:KEY=VALUE,...]", help="A policy to ask; repeatable."),
    ],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the one --policy.")
    ] = None,
    slo: Annotated[
        float | None,
        typer.Option(parser=parse_seconds, metavar="TIME", help="Latency objective; default: the journal's, else 30."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what other policies would have made of a past run.

    Every policy is asked about the windows in the journal, in order. Beside that, slot-hours and late time are
    estimated: a simulated job with the capacities, selectivities, downtimes and loads of the journal is scaled by the
    policy. The run itself is estimated the same way and shown beside what was measured, so you see how far to trust it.
    Journals of the simulator, of pipelines on Spark and of attachments can be replayed.

    Example: sluice replay runs/first --policy sluice --policy ds2:over_provisioning=1.4
    """
    if settings and len(policy) > 1:
        raise BadInputError(f"--set goes with one --policy, got {len(policy)}; write NAME:key=value for each")
    chosen: dict[str, Choice] = {}
    for text in policy:
        choice = Choice.parse_text(text)
        choice = choice.model_copy(update={"settings": {**choice.settings, **parse_settings(settings or ())}})
        if choice.label in chosen:
            raise BadInputError(f"--policy {choice.label!r} is given twice")
        chosen[choice.label] = choice
    found = [_asked(run, chosen, slo) for run in read_runs(journal) if run.reports]
    if not found:
        raise BadInputError(f"journal {str(journal)!r} has no cycle to replay")
    if as_json:
        print(json.dumps([one.to_data() for one in found], indent=2))
        return
    console = Console(highlight=False)
    for past in found:
        _show(past, console)


def _asked(run: RunLog, chosen: Mapping[str, Choice], slo_s: float | None) -> PastRun:
    """Every policy aims at what the run is judged by."""
    objective_s = objective_of(run, slo_s)
    asked = {label: create_aiming(one.name, one.settings, objective_s) for label, one in chosen.items()}
    return replay(run, asked, objective_s)


def _show(past: PastRun, console: Console) -> None:
    table = Table("policy", "slot-hours", "late", "late s", "actions", "agreed")
    table.add_row(f"the run: {past.policy} (measured)", *_cells(past.measured), "")
    table.add_row(f"the run: {past.policy} (estimated)", *_cells(past.estimate), "")
    for one in past.replays:
        table.add_row(f"{one.policy} (estimated)", *_cells(one.estimate), f"{one.agreed} of {len(one.advice)}")
    console.print(table)
    console.print(
        f"Estimates, from the capacities in the journal; late: waited longer than {past.objective_s:g} s. "
        f"'agreed': windows in which it recommends what was in force.",
        soft_wrap=True,
    )
    if past.unknown:
        console.print(f"Taken to be never the bottleneck, capacity unknown: {', '.join(past.unknown)}", soft_wrap=True)
    for one in past.replays:
        for line in _differences(one):
            console.print(line, soft_wrap=True, markup=False)


def _cells(figures: Figures) -> tuple[str, ...]:
    late = "unknown" if figures.late is None else f"{figures.late:.1%}"
    late_s = "unknown" if figures.late_s is None else f"{figures.late_s:,.0f}"
    return f"{figures.slot_hours:,.2f}", late, late_s, str(figures.actions)


def _differences(one: Replay) -> list[str]:
    """The first windows in which it would have changed its mind about something else than what was in force."""
    lines: list[str] = []
    before: dict[str, int] | None = None
    for advice in one.advice:
        if advice.recommended != advice.in_force and advice.recommended != before:
            differs = {name: n for name, n in advice.recommended.items() if n != advice.in_force.get(name)}
            changed = ", ".join(f"{name} {n} not {advice.in_force.get(name)}" for name, n in differs.items())
            lines.append(f"{clock(advice.time_s)} {one.policy} would have {changed}. Why: {advice.reason}")
        before = advice.recommended
    return [*lines[:SHOWN], f"... and {len(lines) - SHOWN} more; --json has all"] if len(lines) > SHOWN else lines
