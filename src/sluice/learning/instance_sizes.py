"""Instance sizes: what they cost, and how fast an operator is on each of them.

The example's prices are shaped like a cloud's general-purpose family: 2 GB per core, a price linear in cores and
memory plus a small share per instance for what every instance repeats. The figures are round and nobody's offer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sluice.errors import BadInputError
from sluice.model import InstanceSize, NodeType
from sluice.model.base import Name, Positive, first_problem

EXAMPLE = tuple(
    InstanceSize(name=name, cpu_cores=cores, memory_mb=2048 * cores, price_per_hour=price)
    for name, cores, price in (
        ("nano", 0.5, 0.026),
        ("micro", 1.0, 0.046),
        ("small", 1.5, 0.066),
        ("medium", 2.0, 0.086),
        ("large", 3.0, 0.126),
        ("xlarge", 4.0, 0.166),
    )
)
ONE_SIZE = (InstanceSize(name="slot", cpu_cores=1.0, memory_mb=2048.0, price_per_hour=0.046),)
TABLES = {"example": EXAMPLE, "one-size": ONE_SIZE}

EVERY_OPERATOR = "*"
_RATES = TypeAdapter(dict[Name, dict[Name, Positive]])


def price_table(name: str) -> tuple[InstanceSize, ...]:
    """A built-in table by its name, else a JSON file: a list of `{name, cpu_cores, memory_mb, price_per_hour}`."""
    return TABLES[name] if name in TABLES else tuple(one.size for one in node_types(name))


@lru_cache(maxsize=32)
def node_types(name: str) -> tuple[NodeType, ...]:
    """The same as types of nodes; in a file each may also have its `slots` and its `start_s`."""
    if name in TABLES:
        return tuple(NodeType.model_validate(size.to_data()) for size in TABLES[name])
    path = Path(name)
    try:
        entries = json.loads(path.read_text())
    except OSError as error:
        raise BadInputError(
            f"price table {name!r} is neither built in ({', '.join(TABLES)}) nor a readable file"
        ) from error
    except ValueError as error:
        raise BadInputError(f"price table {name!r} is no JSON: {error}") from error
    if not isinstance(entries, list) or not entries:
        raise BadInputError(f"price table {name!r} must be a list of at least one size, got {str(entries)[:50]}")
    sizes = tuple(NodeType.parse(entry, f"price table {name!r}") for entry in entries)
    names = [size.name for size in sizes]
    if len(set(names)) != len(names):
        raise BadInputError(f"price table {name!r}: size names must differ, got {names}")
    return sizes


@dataclass(frozen=True)
class SizeProfile:
    """Operator -> size -> records/s of one instance. `*` stands for every operator that has no entry of its own."""

    rates: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def of(self, operator: str, sizes: Sequence[InstanceSize]) -> dict[str, float]:
        """Rates of the given sizes; only their ratios matter where production calibrates them."""
        known = self.rates.get(operator) or self.rates.get(EVERY_OPERATOR)
        if known is None:
            return {size.name: size.cpu_cores for size in sizes}
        return {size.name: known[size.name] for size in sizes if size.name in known}


@lru_cache(maxsize=32)
def load_profile(path: str) -> SizeProfile:
    """From a JSON file `{operator: {size: records/s}}`; an empty path is the profile of nothing known."""
    if not path:
        return SizeProfile()
    try:
        data = json.loads(Path(path).read_text())
        return SizeProfile(_RATES.validate_python(data))
    except OSError as error:
        raise BadInputError(f"performance file {path!r} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise BadInputError(f"performance file {path!r}: {first_problem(error)}") from error
    except ValueError as error:
        raise BadInputError(f"performance file {path!r} is no JSON: {error}") from error


@dataclass(frozen=True, kw_only=True)
class ResourceCurve:
    """Records/s of one instance, given its size: what the simulator runs with and sampling has to find.

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
