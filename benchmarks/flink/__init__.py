"""Pipelines on Spark against the same queries in Flink SQL: `python -m benchmarks.flink --help`."""
