"""Standard queries, one file each; `base.py` has the protocol and the registry."""

from sluice.lab.pipelines.base import PipelineDefinition, RunsOnSpark, pipeline, pipelines

__all__ = ["PipelineDefinition", "RunsOnSpark", "pipeline", "pipelines"]
