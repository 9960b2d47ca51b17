"""Pipelines rescaled and killed while records flow: their output is that of pandas, or the check fails."""
