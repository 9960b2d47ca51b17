"""`sluice sample`: Measure how fast operators are on instances of every size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sluice.cli.app import app
from sluice.cli.durations import parse_seconds
from sluice.cli.node_options import DefaultType, MostNodes, NodeList, Nodes, NodeStart, NodeStop, chosen_nodes
from sluice.cli.run import pipeline_of
from sluice.cli.run_engines import signals_set
from sluice.cli.settings import parse_settings
from sluice.errors import BadInputError, unknown_name
from sluice.files import replace_file
from sluice.lab.run import RunSpec
from sluice.lab.spark_run import SparkSettings, spark_engine, working_folder
from sluice.lab.workloads import workloads
from sluice.learning.sampling import ConvergenceRule, DynamicSampling, FixedStepSampling
from sluice.protocol import policies
from sluice.registry import build

SAMPLERS: dict[str, DynamicSampling | FixedStepSampling] = {"dsa": DynamicSampling(), "fssa": FixedStepSampling(step=1)}
Settings = list[str] | None


@app.command("sample")
def sample_command(
    pipeline: Annotated[str, typer.Argument(help="A built-in pipeline (see 'sluice pipelines') or file.py:name.")],
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
    workload: Annotated[str, typer.Option(help="How records arrive meanwhile; see 'sluice workloads'.")] = "constant",
    pipeline_set: Annotated[
        Settings, typer.Option("--pipeline-set", metavar="KEY=VALUE", help="Pipeline parameter, e.g. peak_rate.")
    ] = None,
    spark_set: Annotated[
        Settings, typer.Option("--spark-set", metavar="KEY=VALUE", help="Spark setting: trigger_s, keep_output, ...")
    ] = None,
    node_type: DefaultType = None,
    node_start: NodeStart = None,
    node_stop: NodeStop = None,
    node_list: NodeList = None,
    most_nodes: MostNodes = None,
    root: Annotated[
        Path | None, typer.Option(help="Folder for topics and checkpoints that all nodes share; default: temporary.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same records.")] = 0,
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
    convergence = ConvergenceRule(windows=windows, tolerance=tolerance, max_windows=max_windows)
    from sluice.lab.spark_sampling import models_of, rates_of, sample_operators
    from sluice.spark.nodes.engine import SizedEngine
    from sluice.spark.nodes.sampling import LiveSampling

    given = parse_settings(pipeline_set or (), "--pipeline-set")
    settings = build(SparkSettings, parse_settings(spark_set or (), "--spark-set"), "spark")
    spec = RunSpec(
        pipeline=pipeline_of(pipeline, given, profile=None),
        policy=policies.create("static"),
        workload=workloads.create(workload),
        engine="spark",
        seed=seed,
    )
    console = Console(stderr=True, quiet=as_json)
    sizes = sorted((one.size for one in setup.types), key=lambda one: (one.cpu_cores, one.memory_mb))
    with working_folder(root, resume=False) as folder:
        engine, initial = spark_engine(spec, settings, folder, master=master, nodes=setup)
        assert isinstance(engine, SizedEngine)
        with signals_set(engine.clock.interrupted):
            try:
                chosen = _operators(operators, engine.graph.names)
                target = engine.start(initial)
                found = sample_operators(
                    {
                        name: LiveSampling(engine, name, target, window_s=window, trigger_s=settings.trigger_s)
                        for name in chosen
                    },
                    sizes,
                    SAMPLERS[sampler],
                    convergence,
                    out,
                    console.print,
                )
            finally:
                counted = engine.stop()
    models = models_of(found)
    rates = rates_of(models, sizes)
    if performance is not None:
        replace_file(performance, json.dumps(rates, indent=2).encode(), durable=True)
    result: dict[str, Any] = {
        "samples": {name: {one.size.name: one.rate for one in taken} for name, taken in found.items()},
        "rates": rates,
        "cross_validated_rmse": {name: one.rmse for name, one in models.items()},
        "lost_records": counted.lost,
        "duplicated_records": counted.duplicated,
    }
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _show(result, [one.name for one in sizes], out)


def _operators(given: str | None, known: tuple[str, ...]) -> list[str]:
    chosen = list(known) if given is None else given.split(",")
    for name in chosen:
        if name not in known:
            raise unknown_name("operator", name, known)
    return chosen


def _show(result: dict[str, Any], sizes: list[str], out: Path) -> None:
    table = Table("operator", *sizes, title="records/s of one instance (* by the model)")
    for name, rates in result["rates"].items():
        sampled = result["samples"][name]
        cells = [f"{rates[size]:,.0f}{'' if size in sampled else ' *'}" if size in rates else "-" for size in sizes]
        table.add_row(name, *cells)
    console = Console()
    console.print(table)
    console.print(f"samples: {out}; records lost {result['lost_records']}, twice {result['duplicated_records']}")
