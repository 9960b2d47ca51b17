"""`sluice run`: Run a pipeline under a scaling policy and say what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sluice.cli.app import app
from sluice.cli.durations import parse_seconds
from sluice.cli.job_options import (
    PipelineName,
    PipelineSet,
    Seed,
    Settings,
    SparkSet,
    WorkloadName,
    WorkloadSet,
    pipeline_of,
)
from sluice.cli.node_options import DefaultType, MostNodes, NodeList, Nodes, NodeStart, NodeStop, chosen_nodes
from sluice.cli.run_engines import Where, run_on_spark, run_simulated
from sluice.cli.run_page import NoPage, RunPage
from sluice.cli.settings import parse_settings
from sluice.control.guards import Guards
from sluice.control.memory import MemoryStore
from sluice.control.shadows import shadow_policies
from sluice.errors import BadInputError, unknown_name
from sluice.files import replace_file
from sluice.journal.records import Choice
from sluice.lab.run import THESIS_GUARDS, RunSpec, simulated_job
from sluice.lab.spark_run import (
    DEFAULT_DURATION_S,
    SparkSettings,
    spark_job,
    working_folder,
)
from sluice.lab.summary import Summary, summarise
from sluice.lab.workloads import Workload, duration_s, workloads
from sluice.protocol import DEFAULT_POLICY, create_aiming, recommends_sizes
from sluice.registry import build
from sluice.spark.masters import check_master

if TYPE_CHECKING:
    from sluice.lab.placing import PlacementSetup
    from sluice.lab.spark_placing import SparkPlacement


@dataclass(frozen=True)
class EngineDefaults:
    """What a run is given unless asked otherwise; with `fits_pattern` the whole pattern fits into the run."""

    interval_s: float
    guards: dict[str, float]
    duration_s: float | None = None
    fits_pattern: bool = False


ENGINE_DEFAULTS = {
    "sim": EngineDefaults(15.0, dict(THESIS_GUARDS)),
    "spark": EngineDefaults(10.0, {"max_slots": 24, "cooldown_s": 20.0}, DEFAULT_DURATION_S, fits_pattern=True),
}


@app.command("run")
def run_command(
    pipeline: PipelineName,
    engine: Annotated[str, typer.Option(help="What runs it: sim or spark.")] = "sim",
    policy: Annotated[str, typer.Option(help="The policy; see 'sluice policies'.")] = DEFAULT_POLICY,
    workload: WorkloadName = "cosine",
    duration: Annotated[
        float | None,
        typer.Option(
            parser=parse_seconds,
            metavar="TIME",
            help="Length in engine time, e.g. 300 or 5m; default: the whole pattern on sim, 300 on spark.",
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            parser=parse_seconds,
            metavar="TIME",
            help="Time between decisions, e.g. 15 or 30s; default: 15 on sim, 10 on spark.",
        ),
    ] = None,
    speedup: Annotated[
        float | None,
        typer.Option(help="How much faster the workload's own time runs; default: 1 on sim, to fit on spark."),
    ] = None,
    seed: Seed = 0,
    slo: Annotated[
        float, typer.Option(parser=parse_seconds, metavar="TIME", help="Latency objective, e.g. 30 or 30s.")
    ] = 30.0,
    settings: Annotated[Settings, typer.Option("--set", metavar="KEY=VALUE", help="Policy parameter.")] = None,
    guard: Annotated[
        Settings, typer.Option("--guard", metavar="KEY=VALUE", help="Guard: cooldown_s, max_step, max_slots, ...")
    ] = None,
    pipeline_set: PipelineSet = None,
    workload_set: WorkloadSet = None,
    sim_set: Annotated[
        Settings, typer.Option("--sim-set", metavar="KEY=VALUE", help="Simulator setting, e.g. downtime_s, rescale.")
    ] = None,
    profile: Annotated[
        Path | None, typer.Option(help="Costs that 'sluice profile' measured, for the simulator and for --placement.")
    ] = None,
    placement: Annotated[
        str | None,
        typer.Option(help="How instances are placed on workers after every decision; see 'sluice strategies'."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark: a cluster's master, spark://HOST:PORT; default: Spark in this process.")
    ] = None,
    nodes: Nodes = None,
    node_type: DefaultType = None,
    node_start: NodeStart = None,
    node_stop: NodeStop = None,
    node_list: NodeList = None,
    most_nodes: MostNodes = None,
    cluster: Annotated[
        Settings,
        typer.Option(
            "--cluster",
            metavar="KEY=VALUE",
            help="Workers for --placement: workers, slots, cpu, ...; on Spark cpu, io, net.",
        ),
    ] = None,
    spark_set: SparkSet = None,
    topics: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Spark: topics on a broker, kafka://host:port[/prefix][?config=client.properties]."
        ),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            help="Spark: micro-batch, or real-time (one query between two topics of a broker).", metavar="HOW"
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(help="Spark: folder for topics and checkpoints; a run found there is resumed with its target."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Spark: only resume a run found in --root.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for journal.jsonl, summary.json and report.html.")] = None,
    memory: Annotated[
        Path | None, typer.Option(help="File with what the policy has learned: loaded at the start, kept up to date.")
    ] = None,
    shadow: Annotated[
        Settings,
        typer.Option(
            "--shadow",
            metavar="NAME[:KEY=VALUE,...]",
            help="Ask this policy in every cycle, too, and record what it would do; repeatable.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and record, but change nothing.")] = False,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Show the run on a local page; on a terminal until Ctrl-C.")
    ] = False,
    dashboard_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the page; default: 8642, or one that is free.")
    ] = None,
    dashboard_host: Annotated[str, typer.Option(help="Address of the page.")] = "127.0.0.1",
    dashboard_token: Annotated[
        str | None, typer.Option(envvar="SLUICE_DASHBOARD_TOKEN", help="Who has it may use the page's controls.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
) -> None:
    """Run a pipeline under a scaling policy and say what came of it.

    Example: sluice run q1 --policy sluice --workload cosine --seed 1 --out runs/first

    On Spark: sluice run wordcount --engine spark --duration 300. Ctrl-C stops between two batches; with
    --root the same command goes on where it was.

    With --nodes instances have sizes: sluice run q1 --engine spark --master spark://HOST:PORT --nodes sizes.json
    --policy qescalor. Nodes are started before they are needed, and drained when they are not.

    On a cluster (see 'sluice cluster'): sluice run q5 --engine spark --master spark://HOST:PORT --root /shared/q5
    --placement caps. The folder must be one that all workers share.

    With --shadow other policies are asked beside the one that acts: 'sluice explain' says where they differ.
    """
    if engine not in ENGINE_DEFAULTS:
        raise unknown_name("engine", engine, ENGINE_DEFAULTS)
    if profile is not None and engine != "sim" and placement is None:
        raise BadInputError(
            f"--profile is for the simulator and for --placement, which compute with it; got --engine {engine}"
        )
    if engine != "spark":
        for option, value in (("--master", master), ("--topics", topics), ("--trigger", trigger)):
            if value is not None:
                raise BadInputError(f"{option} is for --engine spark, got --engine {engine}")
    sized = chosen_nodes(
        nodes,
        node_type=node_type,
        node_start=node_start,
        node_stop=node_stop,
        node_list=node_list,
        most_nodes=most_nodes,
    )
    if sized is not None and (engine != "spark" or master is None):
        raise BadInputError(f"--nodes are for --engine spark with --master spark://HOST:PORT, got --nodes {nodes}")
    if sized is not None and placement is not None:
        raise BadInputError(f"with --nodes an instance is a node: no --placement, got {placement!r}")
    of_workers = parse_settings(cluster or (), "--cluster")
    placing = _placing(placement, of_workers) if engine == "sim" else None
    on_spark = _placing_on_spark(placement, of_workers, master) if engine == "spark" else None
    defaults = ENGINE_DEFAULTS[engine]
    given_guards = parse_settings(guard or (), "--guard")
    guards = {**defaults.guards, **({"max_slots": placing.cluster.slots} if placing else {})}
    chosen = {
        "pipeline": (pipeline, parse_settings(pipeline_set or (), "--pipeline-set")),
        "policy": (policy, _policy_settings(policy, parse_settings(settings or ()), nodes)),
        "workload": (workload, parse_settings(workload_set or (), "--workload-set")),
    }
    driven = workloads.create(*chosen["workload"])
    duration = duration if duration is not None else defaults.duration_s
    spec = RunSpec(
        pipeline=pipeline_of(*chosen["pipeline"], profile=profile if engine == "sim" else None),
        policy=create_aiming(*chosen["policy"], slo),
        workload=driven,
        choices={kind: Choice(name=n, settings=s) for kind, (n, s) in chosen.items()},
        engine=engine,
        guards=build(Guards, {**guards, **given_guards}, "guards"),
        duration_s=duration,
        interval_s=interval if interval is not None else defaults.interval_s,
        speedup=speedup if speedup is not None else _speedup(driven, duration, fits=defaults.fits_pattern),
        seed=seed,
        slo_s=slo,
        simulator=parse_settings(sim_set or (), "--sim-set"),
        dry_run=dry_run,
        placing=placing,
        shadows=shadow_policies(shadow or (), slo),
    )
    if on_spark is not None and profile is not None:
        on_spark = _profiled(on_spark, profile, spec)
    store = MemoryStore(memory, policy) if memory else None
    page: NoPage = NoPage()
    if dashboard:
        page = RunPage(dashboard_host, dashboard_port, dashboard_token, title=pipeline, objective_s=slo)
    if sized is None and getattr(spec.policy, "share_nodes", False):
        raise BadInputError("share_nodes=true needs --nodes: only there do operators share nodes")
    if getattr(spec.policy, "samples", "") or getattr(spec.policy, "performance", ""):
        _check_size_files(spec)
    if sized is not None:
        sized.check_policy(policy, spec.policy)
    elif engine == "spark" and recommends_sizes(spec.policy):
        raise BadInputError(
            f"policy {policy!r} recommends instance sizes, which --engine spark applies with --nodes only"
        )
    with page:
        if engine == "spark":
            named = {"topics": topics, "trigger": trigger}
            given = {
                **parse_settings(spark_set or (), "--spark-set"),
                **{name: value for name, value in named.items() if value is not None},
            }
            settings_of_spark = build(SparkSettings, given, "spark")
            if settings_of_spark.elastic:
                if on_spark is None:
                    raise BadInputError("--spark-set elastic=true needs a --placement, which says who is idle")
                on_spark = replace(on_spark, elastic=True)
            with working_folder(root, resume=resume) as folder:
                where = Where(settings=settings_of_spark, root=folder, master=master, placement=on_spark, nodes=sized)
                recorded = run_on_spark(
                    spec,
                    where,
                    out,
                    store,
                    page,
                    title=pipeline,
                    quiet=as_json,
                    slots_given="max_slots" in given_guards,
                )
        else:
            recorded = run_simulated(spec, out, store, page, quiet=as_json)
        summary = summarise(*recorded, spec.slo_s)
        if out:
            replace_file(out / "summary.json", summary.model_dump_json(indent=2).encode(), durable=True)
            _draw(out)
        _show(summary, out, as_json)
        if not as_json:
            page.stay()


def _placing(strategy: str | None, settings: dict[str, str]) -> PlacementSetup | None:
    if strategy is None and not settings:
        return None
    from sluice.lab.placing import PlacementSetup, UniformCluster
    from sluice.placement import placers

    if strategy is None:
        raise BadInputError(f"--cluster needs a --placement to fill it; known: {', '.join(placers.names())}")
    return PlacementSetup(placer=placers.create(strategy), cluster=build(UniformCluster, settings, "cluster").cluster())


def _placing_on_spark(strategy: str | None, settings: dict[str, str], master: str | None) -> SparkPlacement | None:
    """Checked before Spark starts."""
    if master is not None:
        check_master(master)
    if strategy is None and not settings:
        return None
    from sluice.lab.spark_placing import SparkPlacement, WorkerCapacity
    from sluice.placement import placers

    if strategy is None:
        raise BadInputError(f"--cluster needs a --placement to fill it; known: {', '.join(placers.names())}")
    placer = placers.create(strategy)
    if master is None:
        raise BadInputError("--placement on Spark needs workers: --master spark://HOST:PORT, see 'sluice cluster up'")
    return SparkPlacement(placer=placer, capacity=build(WorkerCapacity, settings, "cluster"))


def _profiled(placement: SparkPlacement, profile: Path, spec: RunSpec) -> SparkPlacement:
    from sluice.lab.spark_placing import units_of
    from sluice.placement.request import read_profile

    return replace(placement, units=units_of(read_profile(profile), list(spark_job(spec).pipeline.operators)))


def _policy_settings(policy: str, given: dict[str, str], types: str | None) -> dict[str, str]:
    if types is None:
        return given
    from sluice.lab.spark_nodes import with_prices

    return with_prices(given, policy, types)


def _check_size_files(spec: RunSpec) -> None:
    from sluice.lab.size_files import check_size_files

    names = spark_job(spec).pipeline.operators if spec.engine == "spark" else simulated_job(spec).graph.names
    check_size_files(spec.policy, list(names))


def _speedup(driven: Workload, duration: float | None, *, fits: bool) -> float:
    return max(1.0, duration_s(driven) / duration) if fits and duration and duration > 0 else 1.0


def _draw(out: Path) -> None:
    from sluice.lab.report.content import collect
    from sluice.lab.report.page import write_page

    write_page(collect([out]), out / "report.html")


def _show(summary: Summary, out: Path | None, as_json: bool) -> None:
    if as_json:
        print(summary.model_dump_json(indent=2))
        return
    table = Table("metric", "value")
    figures: dict[str, Any] = json.loads(summary.model_dump_json())
    for name, value in figures.items():
        digits = 4 if name == "price" else 3
        shown = "unknown" if value is None else f"{value:,.{digits}f}" if isinstance(value, float) else f"{value:,}"
        if not (name in ("placement_followed", "price") and value is None):
            table.add_row(name, shown)
    console = Console()
    console.print(table)
    if out:
        console.print(f"report: {out / 'report.html'}", soft_wrap=True)
