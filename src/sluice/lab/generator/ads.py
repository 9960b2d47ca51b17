"""Ad events of the Yahoo streaming benchmark, as JSON text: its first operator is a parser."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluice.lab.generator.draws import below, bits, numbers

AD_EVENT_SCHEMA = "event STRING"
EVENT_TYPES = ("view", "click", "purchase")
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
PEOPLE = 10_000
PAGES = 1_000


@dataclass(frozen=True, kw_only=True)
class AdEvents:
    """Events on `campaigns * ads_per_campaign` ads (100 and 10 in the benchmark); a third of them are views."""

    campaigns: int = 100
    ads_per_campaign: int = 10

    def __post_init__(self) -> None:
        for name in ("campaigns", "ads_per_campaign"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def __call__(self, first: int, count: int, time_s: float, seed: int) -> pa.Table:
        number = numbers(first, count)

        def one_of(values: pa.Array, lane: int) -> pa.Array:
            return values.take(below(len(values), bits(number, seed=seed, lane=lane)))

        text = pc.binary_join_element_wise(
            '{"user_id":"',
            one_of(_ids("user", PEOPLE), 200),
            '","page_id":"',
            one_of(_ids("page", PAGES), 201),
            '","ad_id":"',
            one_of(_ids("ad", self.campaigns * self.ads_per_campaign), 202),
            '","ad_type":"',
            one_of(pa.array(AD_TYPES), 203),
            '","event_type":"',
            one_of(pa.array(EVENT_TYPES), 204),
            '","event_time":',
            pa.array(np.full(count, round(time_s * 1e6))).cast(pa.string()),
            ',"ip_address":"192.0.2.1"}',
            "",
        )
        return pa.table({"event": text})


@cache
def _ids(kind: str, count: int) -> pa.Array:
    return pa.array([f"{kind}-{n:05d}" for n in range(count)], pa.string())
