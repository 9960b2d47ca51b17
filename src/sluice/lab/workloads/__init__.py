"""Load patterns, one file each; `base.py` has the protocol and the registry."""

from sluice.lab.workloads.base import RateCurve, Workload, duration_s, rate_curve, workload, workloads

__all__ = ["RateCurve", "Workload", "duration_s", "rate_curve", "workload", "workloads"]
