"""The options about a pipeline on Spark that commands share, and the pipeline they name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from sluice.lab.pipelines import PipelineDefinition, pipelines
from sluice.lab.spark_run import PipelineFile
from sluice.registry import build

Settings = list[str] | None
PipelineName = Annotated[str, typer.Argument(help="A built-in pipeline (see 'sluice pipelines') or file.py:name.")]
PipelineSet = Annotated[
    Settings, typer.Option("--pipeline-set", metavar="KEY=VALUE", help="Pipeline parameter, e.g. peak_rate.")
]
WorkloadName = Annotated[str, typer.Option(help="How records arrive; see 'sluice workloads'.")]
WorkloadSet = Annotated[
    Settings, typer.Option("--workload-set", metavar="KEY=VALUE", help="Workload parameter, e.g. path of a trace.")
]
SparkSet = Annotated[
    Settings, typer.Option("--spark-set", metavar="KEY=VALUE", help="Spark setting: slots, trigger_s, rescale, ...")
]
Seed = Annotated[int, typer.Option(help="Same seed, same records.")]


def pipeline_of(name: str, settings: dict[str, str], *, profile: Path | None = None) -> PipelineDefinition:
    """A built-in one by its name, else one from a file; with a `profile` it costs what was measured."""
    if ".py" in name:
        return cast(PipelineDefinition, build(PipelineFile, {"where": name, **settings}, "pipeline"))
    definition = pipelines.create(name, settings)
    if profile is None:
        return definition
    from sluice.lab.pipelines.profiled import ProfiledPipeline
    from sluice.placement.request import read_profile

    return ProfiledPipeline(definition=definition, profile=read_profile(profile))
