"""What an operator makes of cores and memory: the curve the simulator runs with and sampling has to find."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.errors import BadInputError
from sluice.model import InstanceSize


@dataclass(frozen=True, kw_only=True)
class ResourceCurve:
    """Records/s of one instance, given its size.

    Cores: up to one they count in full; above, by the universal scalability law `c / (1 + contention * (c - 1) +
    coherence * c * (c - 1))`; beyond `threads` they are idle. Memory: `overhead_mb` is the instance's own, the
    rest holds a part of the working set; a record whose data is not there takes `1 + miss_penalty` times as long.
    """

    rate_per_core: float
    threads: float
    contention: float = 0.0
    coherence: float = 0.0
    overhead_mb: float = 0.0
    working_set_mb: float = 0.0
    miss_penalty: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rate_per_core", "threads"):
            if not getattr(self, name) > 0:
                raise BadInputError(f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("contention", "coherence", "overhead_mb", "working_set_mb", "miss_penalty"):
            if not getattr(self, name) >= 0:
                raise BadInputError(f"{name} must not be negative, got {getattr(self, name)}")

    def __call__(self, size: InstanceSize) -> float:
        return self.rate_per_core * self._cores(size.cpu_cores) / (1 + self.miss_penalty * self._missing(size))

    def speedup(self, size: InstanceSize) -> float:
        """Relative to one core with all the memory it can use: what the simulator's operators are given."""
        return self(size) / self.rate_per_core

    def _cores(self, cores: float) -> float:
        used = min(cores, self.threads)
        if used <= 1:
            return used
        return used / (1 + self.contention * (used - 1) + self.coherence * used * (used - 1))

    def _missing(self, size: InstanceSize) -> float:
        if self.working_set_mb == 0:
            return 0.0
        held = (size.memory_mb - self.overhead_mb) / self.working_set_mb
        return 1.0 - min(1.0, max(0.0, held))
