"""Files that say what sizes can do for an operator, held against the pipeline they are given with."""

from __future__ import annotations

from collections.abc import Collection

from sluice.errors import BadInputError
from sluice.learning.instance_sizes import EVERY_OPERATOR, load_profile
from sluice.learning.sampled_sizes import load_samples
from sluice.protocol import Policy


def check_size_files(policy: Policy, operators: Collection[str]) -> None:
    """Bad input if a policy's file knows none of the operators: it is another pipeline's."""
    for parameter in ("samples", "performance"):
        path = str(getattr(policy, parameter, ""))
        known = load_samples(path) if parameter == "samples" else load_profile(path).rates
        if known and EVERY_OPERATOR not in known and all(foreign(name, operators) for name in known):
            raise BadInputError(
                f"{parameter} file {path!r} is of another pipeline: it has {', '.join(known)}, "
                f"this one {', '.join(operators)}"
            )


def foreign(name: str, operators: Collection[str]) -> bool:
    """Whether it names none of the operators, alone or as a chain of them."""
    return not set(name.split("+")) <= set(operators)
