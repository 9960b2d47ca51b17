"""Times as people write them: `30s`, `5m`, `2h`, or a number of seconds."""

from __future__ import annotations

import math
import re

from sluice.errors import BadInputError

Duration = float | str
"""A number of seconds, or a text such as `30s`."""

UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_FORM = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*([a-z]*)\s*\Z")


def seconds(value: object, what: str) -> float:
    """`value` in seconds; `what` names the argument in the error."""
    time_s = _read(value)
    if not math.isfinite(time_s):
        raise BadInputError(f"{what} must be seconds or a time such as '30s', '5m' or '2h', got {value!r}")
    return time_s


def _read(value: object) -> float:
    """No finite number where it is no time, or one that is too large to be counted."""
    if isinstance(value, str) and (found := _FORM.match(value)) and found[2] in UNITS_S:
        return float(found[1]) * UNITS_S[found[2]]
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return math.nan
