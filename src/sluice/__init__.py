"""sluice: auto-scaling for Spark Structured Streaming, and the bench that compares scaling policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice.spark.attach import attach as attach
    from sluice.spark.pipeline.definition import Pipeline as Pipeline

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`sluice.Pipeline` and `sluice.attach`, imported when asked for: what is not used costs nothing."""
    if name == "Pipeline":
        from sluice.spark.pipeline.definition import Pipeline

        return Pipeline
    if name == "attach":
        from sluice.spark.attach import attach

        return attach
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
