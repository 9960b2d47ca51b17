"""On which worker every task runs: the cost model, CAPS and the strategies it is compared with, one file each."""

from sluice.placement.base import (
    Costs,
    Placed,
    PlacementRequest,
    Placer,
    TaskGroup,
    TaskLoad,
    placer,
    placers,
)

__all__ = [
    "Costs",
    "Placed",
    "PlacementRequest",
    "Placer",
    "TaskGroup",
    "TaskLoad",
    "placer",
    "placers",
]
