"""What a job is meant to keep, in the words of the person who runs it: `latency<30s`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sluice.durations import seconds
from sluice.errors import BadInputError

_FORM = re.compile(r"\s*latency\s*<=?(.+)\Z")


@dataclass(frozen=True)
class Objective:
    """Records are to be done with within this time."""

    latency_s: float

    @staticmethod
    def parse(text: object) -> Objective:
        found = _FORM.match(text) if isinstance(text, str) else None
        if not found:
            raise BadInputError(f"objective must look like 'latency<30s', got {text!r}")
        latency_s = seconds(found[1], "objective: the latency")
        if latency_s <= 0:
            raise BadInputError(f"objective: the latency must be above 0, got {text!r}")
        return Objective(latency_s)
