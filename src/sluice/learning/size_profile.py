"""What is known about the speed of sizes before a job runs: measured rates per operator, or cores as a first guess."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sluice.errors import BadInputError
from sluice.learning.performance import PerformanceModel
from sluice.model import InstanceSize
from sluice.model.base import Name, Positive, first_problem

EVERY_OPERATOR = "*"
_RATES = TypeAdapter(dict[Name, dict[Name, Positive]])


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


def profile_of(models: Mapping[str, PerformanceModel], sizes: Sequence[InstanceSize]) -> SizeProfile:
    """What the performance models of a job's operators say about the sizes on offer."""
    return SizeProfile(
        {
            operator: {
                size.name: rate for size, rate in zip(sizes, model.rates(sizes).tolist(), strict=True) if rate > 0
            }
            for operator, model in models.items()
        }
    )


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
