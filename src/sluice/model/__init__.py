"""The words everything else is said in: frozen, validated, JSON in and out."""

from sluice.model.cluster import Cluster, InstanceSize, NodeType, Placement, Worker
from sluice.model.graph import Edge, EdgeKind, Graph, Operator
from sluice.model.learned import Learned, LearnedCurve, LoadForecast
from sluice.model.observation import (
    ActionCost,
    NodeTypeMetrics,
    Observation,
    OperatorMetrics,
    PlacedTasks,
    WorkerMetrics,
    observation_schema,
    unknown_metrics,
)
from sluice.model.recommendation import InstanceMix, Recommendation
from sluice.model.target import OperatorChange, Reconciliation, Target
from sluice.model.topology import Topology

__all__ = [
    "ActionCost",
    "Cluster",
    "Edge",
    "EdgeKind",
    "Graph",
    "InstanceMix",
    "InstanceSize",
    "Learned",
    "LearnedCurve",
    "LoadForecast",
    "NodeType",
    "NodeTypeMetrics",
    "Observation",
    "Operator",
    "OperatorChange",
    "OperatorMetrics",
    "PlacedTasks",
    "Placement",
    "Recommendation",
    "Reconciliation",
    "Target",
    "Topology",
    "Worker",
    "WorkerMetrics",
    "observation_schema",
    "unknown_metrics",
]
