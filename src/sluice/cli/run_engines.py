"""What `sluice run` does once it knows what to run: drive an engine, show how far it is, end it well on a signal."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sluice.cli.run_page import NoPage
from sluice.cli.view import RunView
from sluice.control.memory import MemoryStore
from sluice.files import replace_file
from sluice.journal.file import JOURNAL_FILE, FileJournal, Journal, MemoryJournal, read_runs
from sluice.journal.records import End
from sluice.journal.results import CycleReport
from sluice.lab.run import RunSpec, run, simulated_engine
from sluice.lab.spark_run import SparkSettings, generator_report, saved_run, spark_engine

if TYPE_CHECKING:
    from sluice.lab.spark_nodes import NodeSetup
    from sluice.lab.spark_placing import SparkPlacement

OBJECTS_BETWEEN_COLLECTIONS = 100_000

Recorded = tuple[Sequence[CycleReport], End | None]
"""One run, as far as its summary needs it."""


@dataclass(frozen=True, kw_only=True)
class Where:
    """How and where a pipeline runs on Spark."""

    settings: SparkSettings
    root: Path
    master: str | None = None
    placement: SparkPlacement | None = None
    nodes: NodeSetup | None = None


def run_on_spark(
    spec: RunSpec,
    where: Where,
    out: Path | None,
    store: MemoryStore | None,
    page: NoPage,
    *,
    title: str,
    quiet: bool,
    slots_given: bool,
) -> Recorded:
    from sluice.lab.spark_placing import WorkerReview, cluster_of
    from sluice.spark.pipeline.failure import OperatorFailedError

    console = Console(stderr=True)
    view = RunView(title, spec.whole_duration_s)
    root, placement = where.root, where.placement
    earlier = saved_run(root)
    journal, recorded = _journal(out, appends=earlier is not None)
    page.show(journal)
    watched = console.is_terminal and not quiet
    with console.status("starting Spark") if watched else nullcontext(), sigterm_interrupts():
        engine, initial = spark_engine(
            spec, where.settings, root, master=where.master, placement=placement, nodes=where.nodes
        )
    if where.master is not None and where.nodes is None and not slots_given:
        # workers come and go: how many slots they have is reviewed every cycle
        spec = replace(spec, guards=replace(spec.guards, max_slots=where.settings.slots))
    workers = cluster_of(engine)
    review = None
    if where.master is not None and where.nodes is None:
        resumed = earlier.placement if earlier else None
        review = placement.review(workers, resumed) if placement else WorkerReview(workers, places=False)
    if not quiet:
        for sink, guarantee in engine.guarantees.items():
            console.print(f"sink {sink!r}: {guarantee}", highlight=False)
    with Live(view, console=console, refresh_per_second=2) if watched else nullcontext():
        interrupted = engine.clock.interrupted
        with signals_set(interrupted):
            try:
                run(
                    spec,
                    engine,
                    initial,
                    journal,
                    planner=placement.planner(workers, review) if placement else None,
                    reviewer=review,
                    store=store,
                    on_report=view.add,
                    should_stop=interrupted.is_set,
                    switches=page.switches,
                    fulfil_within_s=where.nodes.patience_s if where.nodes else None,
                )
            except OperatorFailedError as error:
                console.print(error.details, markup=False, highlight=False)
                raise
    generated = generator_report(root)
    if generated is not None:
        if out:
            replace_file(out / "generator.json", generated.model_dump_json(indent=2).encode(), durable=True)
        if not quiet:
            console.print(f"generated {generated.summary()}", highlight=False)
    return recorded()


def _journal(out: Path | None, *, appends: bool = False) -> tuple[Journal, Callable[[], Recorded]]:
    """Where this run is recorded, and how to read it back. A resumed run goes on in the journal there is."""
    if out is None:
        kept = MemoryJournal()
        return kept, lambda: (kept.reports(), kept.end())
    path = out / JOURNAL_FILE
    if not appends:
        path.unlink(missing_ok=True)

    def last_run() -> Recorded:
        run = read_runs(path)[-1]
        return run.reports, run.end

    return FileJournal(path, durable=False), last_run


@contextmanager
def signals_set(event: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM set the event instead of killing the process; a second one does what it always did."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def once(number: int, _frame: object) -> None:
        event.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, once)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, while nodes and Spark start: what has been started is stopped again."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_simulated(spec: RunSpec, out: Path | None, store: MemoryStore | None, page: NoPage, *, quiet: bool) -> Recorded:
    # a run keeps all it records, and looking through that for garbage again and again took a quarter of its time
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    engine, initial = simulated_engine(spec)
    journal, recorded = _journal(out)
    page.show(journal)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[doing]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as progress:
        task = progress.add_task("simulating", total=spec.whole_duration_s, doing="")

        def on_report(report: CycleReport) -> None:
            time_s, slots = report.cycle.time_s, report.cycle.target.slots
            progress.update(task, completed=time_s, doing=f"{time_s / 60:.0f} min, {slots} slots")

        watcher = None if quiet else on_report
        run(spec, engine, initial, journal, store=store, on_report=watcher, switches=page.switches)
    return recorded()
