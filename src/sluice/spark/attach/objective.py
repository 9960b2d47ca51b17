"""What a job is meant to keep, in the words of the person who runs it: `latency<30s`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sluice.errors import BadInputError

_FORM = re.compile(r"\s*latency\s*<=?\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min)\s*\Z")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0}


@dataclass(frozen=True)
class Objective:
    """Records are to be done with within this time."""

    latency_s: float

    @staticmethod
    def parse(text: str) -> Objective:
        found = _FORM.match(text)
        if not found:
            raise BadInputError(f"objective must look like 'latency<30s' (units: ms, s, min), got {text!r}")
        latency_s = float(found.group(1)) * _UNIT_S[found.group(2)]
        if latency_s == 0:
            raise BadInputError(f"objective: the latency must be above 0, got {text!r}")
        return Objective(latency_s)
