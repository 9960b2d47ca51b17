"""sluice: auto-scaling for Spark Structured Streaming, and the bench that compares scaling policies."""

__version__ = "0.1.0"
