"""On which worker every task runs: the cost model, CAPS, the strategies it is compared with, and the planner."""

from sluice.placement.request import (
    Costs,
    PlacementRequest,
    PlacementResult,
    Placer,
    TaskGroup,
    TaskLoad,
    placer,
    placers,
)

__all__ = [
    "Costs",
    "PlacementRequest",
    "PlacementResult",
    "Placer",
    "TaskGroup",
    "TaskLoad",
    "placer",
    "placers",
]
