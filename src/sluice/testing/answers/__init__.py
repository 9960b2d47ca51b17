"""The standard queries on Spark against the answers of another engine."""
