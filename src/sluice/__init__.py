"""sluice: auto-scaling for Spark Structured Streaming, and the bench that compares scaling policies.

What a user needs is here, imported when it is first used. `import sluice` alone imports nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice.errors import BadInputError, SluiceError
    from sluice.model import (
        Cluster,
        Edge,
        Graph,
        InstanceSize,
        Observation,
        Operator,
        OperatorMetrics,
        Placement,
        Recommendation,
        Target,
        Topology,
        Worker,
    )
    from sluice.protocol import Memory, Policy, policy
    from sluice.registry import parameter
    from sluice.spark.attach import attach
    from sluice.spark.pipeline.definition import Pipeline
    from sluice.spark.topic import ReaderControl, Topic
    from sluice.spark.topic.sink import TopicSink
    from sluice.spark.topic.source import stream_from

__version__ = "0.1.0"

__all__ = [
    "BadInputError",
    "Cluster",
    "Edge",
    "Graph",
    "InstanceSize",
    "Memory",
    "Observation",
    "Operator",
    "OperatorMetrics",
    "Pipeline",
    "Placement",
    "Policy",
    "ReaderControl",
    "Recommendation",
    "SluiceError",
    "Target",
    "Topic",
    "TopicSink",
    "Topology",
    "Worker",
    "attach",
    "parameter",
    "policy",
    "stream_from",
]

_HOMES = {
    "BadInputError": "sluice.errors",
    "SluiceError": "sluice.errors",
    "parameter": "sluice.registry",
    "Memory": "sluice.protocol",
    "Policy": "sluice.protocol",
    "policy": "sluice.protocol",
    "attach": "sluice.spark.attach",
    "Pipeline": "sluice.spark.pipeline.definition",
    "ReaderControl": "sluice.spark.topic",
    "Topic": "sluice.spark.topic",
    "TopicSink": "sluice.spark.topic.sink",
    "stream_from": "sluice.spark.topic.source",
}
"""Where a name lives, where that is not `sluice.model`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from sluice.errors import needs_extra

    with needs_extra(f"sluice.{name}", "spark"):
        value = getattr(import_module(_HOMES.get(name, "sluice.model")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
