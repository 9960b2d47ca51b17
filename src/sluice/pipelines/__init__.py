"""Standard queries, one file each; `base.py` has the protocol and the registry."""

from sluice.pipelines.base import PipelineDefinition, pipeline, pipelines

__all__ = ["PipelineDefinition", "pipeline", "pipelines"]
