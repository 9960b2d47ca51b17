"""What an operator was measured to cost: the part of a profile that a simulator or a planner can compute with."""

from __future__ import annotations

from pydantic import Field, model_validator
from typing_extensions import Self

from sluice.model.base import Frozen, NonNegative, Parallelism, Positive


class OperatorCosts(Frozen):
    """Per record read, of all inputs together."""

    capacity: dict[Parallelism, Positive] = Field(
        description="parallelism -> records/s read with a backlog", min_length=1
    )
    estimated: bool = Field(False, description="capacity is the slot rate times what the others reached of theirs")
    selectivity: NonNegative = Field(description="records emitted")
    cpu_s_per_record: NonNegative | None = Field(None, description="core-seconds, Python workers included")
    io_bytes_per_record: NonNegative = Field(0.0, description="state bytes read and written")
    net_bytes_per_record: NonNegative = Field(0.0, description="bytes emitted")
    state_bytes_per_record: NonNegative = Field(0.0, description="state left behind")

    @model_validator(mode="after")
    def _has_order(self) -> Self:
        if min(self.capacity) < 1:
            raise ValueError(f"capacity starts at parallelism 1, got {min(self.capacity)}")
        return self
