"""sluice: auto-scaling for Spark Structured Streaming, and the bench that compares scaling policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice.engines.spark.pipeline import Pipeline as Pipeline

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`sluice.Pipeline`, imported when asked for: the command line should not wait for what it does not use."""
    if name == "Pipeline":
        from sluice.engines.spark.pipeline import Pipeline

        return Pipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
