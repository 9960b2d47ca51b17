"""The load over time: patterns, and traces from files."""

from sluice.lab.workloads.base import RateCurve, Workload, duration_s, rate_curve, workload, workloads

__all__ = ["RateCurve", "Workload", "duration_s", "rate_curve", "workload", "workloads"]
