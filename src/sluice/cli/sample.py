"""`sluice sample`: Measure how fast operators are on instances of every size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sluice.cli.app import app
from sluice.cli.durations import parse_seconds
from sluice.cli.job_options import PipelineName, PipelineSet, Seed, SparkSet, WorkloadName, WorkloadSet, pipeline_of
from sluice.cli.node_options import DefaultType, MostNodes, NodeList, Nodes, NodeStart, NodeStop, chosen_nodes
from sluice.cli.run_engines import signals_set, sigterm_interrupts
from sluice.cli.settings import parse_settings
from sluice.errors import BadInputError, unknown_name
from sluice.files import replace_file
from sluice.lab.run import RunSpec
from sluice.lab.spark_run import SparkSettings, spark_engine, spark_job, working_folder
from sluice.lab.spark_sampling import Samples, check_samples, models_of, rates_of, sample_operators
from sluice.lab.workloads import workloads
from sluice.learning.sampling import ConvergenceRule, DynamicSampling, FixedStepSampling
from sluice.protocol import policies
from sluice.registry import build
from sluice.spark.masters import check_master

if TYPE_CHECKING:
    from sluice.control.engine import RecordCount
    from sluice.lab.spark_nodes import NodeSetup
    from sluice.model import InstanceSize

SAMPLERS: dict[str, DynamicSampling | FixedStepSampling] = {"dsa": DynamicSampling(), "fssa": FixedStepSampling(step=1)}


@dataclass(frozen=True, kw_only=True)
class _Pass:
    """What is sampled, how, and on what load."""

    spec: RunSpec
    settings: SparkSettings
    nodes: NodeSetup
    sizes: Sequence[InstanceSize]
    operators: Sequence[str] | None
    sampler: DynamicSampling | FixedStepSampling
    convergence: ConvergenceRule
    window_s: float
    out: Path

    def run(self, master: str, root: Path, console: Console) -> tuple[Samples, RecordCount]:
        from sluice.spark.nodes.engine import SizedEngine
        from sluice.spark.nodes.sampling import LiveSampling

        with sigterm_interrupts():
            engine, initial = spark_engine(self.spec, self.settings, root, master=master, nodes=self.nodes)
        assert isinstance(engine, SizedEngine)
        with signals_set(engine.clock.interrupted):
            try:
                chosen = _known(self.operators, engine.graph.names)
                target = engine.start(initial)
                targets = {
                    name: LiveSampling(
                        engine,
                        name,
                        target,
                        window_s=self.window_s,
                        trigger_s=self.settings.trigger_s,
                        say=console.print,
                    )
                    for name in chosen
                }
                found = sample_operators(targets, self.sizes, self.sampler, self.convergence, self.out, console.print)
            finally:
                counted = engine.stop()
        return found, counted


@app.command("sample")
def sample_command(
    pipeline: PipelineName,
    master: Annotated[str, typer.Option(help="A standalone cluster's master, spark://HOST:PORT.")],
    nodes: Nodes = None,
    operators: Annotated[str | None, typer.Option(help="Operators to sample, a,b,...; default: all.")] = None,
    sampler: Annotated[str, typer.Option(help="dsa: few samples where little changes; fssa: every size.")] = "dsa",
    window: Annotated[
        float, typer.Option(parser=parse_seconds, metavar="TIME", help="Length of a window, several batches.")
    ] = 5.0,
    windows: Annotated[
        int, typer.Option(min=1, help="A rate has converged when so many windows are like those before.")
    ] = 3,
    tolerance: Annotated[float, typer.Option(help="How much they may differ, as a share.")] = 0.05,
    max_windows: Annotated[int, typer.Option(min=2, help="What has not converged by then is taken as it is.")] = 20,
    workload: WorkloadName = "constant",
    workload_set: WorkloadSet = None,
    pipeline_set: PipelineSet = None,
    spark_set: SparkSet = None,
    node_type: DefaultType = None,
    node_start: NodeStart = None,
    node_stop: NodeStop = None,
    node_list: NodeList = None,
    most_nodes: MostNodes = None,
    root: Annotated[
        Path | None, typer.Option(help="Folder for topics and checkpoints that all nodes share; default: temporary.")
    ] = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="File for the samples; with some in it, the pass goes on.")] = Path(
        "samples.json"
    ),
    performance: Annotated[
        Path | None, typer.Option(help="File for records/s of every size, by the model, for 'performance'.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
) -> None:
    """Measure how fast operators are on instances of every size.

    The pipeline runs as ever, on nodes of --node-type. One more node after the other joins an operator and gets as much
    of its input as it can take, until its rate has converged. Nothing is copied: what it reads is the job's.

    Example: sluice sample q1 --master spark://HOST:PORT --nodes sizes.json --out samples.json, and then sluice run q1
    --engine spark --master spark://HOST:PORT --nodes sizes.json --policy qescalor --set samples=samples.json
    """
    setup = chosen_nodes(
        nodes,
        node_type=node_type,
        node_start=node_start,
        node_stop=node_stop,
        node_list=node_list,
        most_nodes=most_nodes,
    )
    if setup is None:
        raise BadInputError("--nodes is missing: the sizes to sample, see 'sluice sizes'")
    if sampler not in SAMPLERS:
        raise unknown_name("sampler", sampler, SAMPLERS)
    check_master(master)
    sizes = sorted((one.size for one in setup.types), key=lambda one: (one.cpu_cores, one.memory_mb))
    todo = _Pass(
        spec=RunSpec(
            pipeline=pipeline_of(pipeline, parse_settings(pipeline_set or (), "--pipeline-set")),
            policy=policies.create("static"),
            workload=workloads.create(workload, parse_settings(workload_set or (), "--workload-set")),
            engine="spark",
            seed=seed,
        ),
        settings=build(SparkSettings, parse_settings(spark_set or (), "--spark-set"), "spark"),
        nodes=setup,
        sizes=sizes,
        operators=None if operators is None else operators.split(","),
        sampler=SAMPLERS[sampler],
        convergence=ConvergenceRule(windows=windows, tolerance=tolerance, max_windows=max_windows),
        window_s=window,
        out=out,
    )
    check_samples(out, list(spark_job(todo.spec).pipeline.operators))
    console = Console(stderr=True, quiet=as_json)
    with working_folder(root, resume=False) as folder:
        found, counted = todo.run(master, folder, console)
    models = models_of(found)
    rates = rates_of(models, sizes)
    if performance is not None:
        replace_file(performance, json.dumps(rates, indent=2).encode(), durable=True)
    result: dict[str, Any] = {
        "samples": {name: {one.size.name: one.rate for one in taken} for name, taken in found.items()},
        "rates": rates,
        "cross_validated_rmse": {name: one.rmse for name, one in models.items()},
        "records": counted.processed,
        "lost_records": counted.lost,
        "duplicated_records": counted.duplicated,
    }
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _show(result, [one.name for one in sizes], out)


def _known(chosen: Sequence[str] | None, operators: tuple[str, ...]) -> Sequence[str]:
    for name in chosen or ():
        if name not in operators:
            raise unknown_name("operator", name, operators)
    return operators if chosen is None else chosen


def _show(result: dict[str, Any], sizes: list[str], out: Path) -> None:
    table = Table("operator", *sizes, title="records/s of one instance (* by the model)")
    for name, rates in result["rates"].items():
        sampled = result["samples"][name]
        cells = [f"{rates[size]:,.0f}{'' if size in sampled else ' *'}" if size in rates else "-" for size in sizes]
        table.add_row(name, *cells)
    console = Console()
    console.print(table)
    counts = f"{result['records']:,} records, lost {result['lost_records']}, twice {result['duplicated_records']}"
    console.print(f"samples: {out}; {counts}", soft_wrap=True)
