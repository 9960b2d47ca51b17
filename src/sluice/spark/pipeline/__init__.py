"""Pipelines on Spark: every operator a streaming query, a topic between them."""
