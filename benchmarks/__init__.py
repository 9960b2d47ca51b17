"""Measurements, each as a ratio to something else in the same run: `python -m benchmarks.NAME --short`."""
