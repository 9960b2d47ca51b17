"""Nexmark: persons, auctions and bids of an online market, each stream made on its own.

Of fifty events one is a person, three are auctions and forty-six are bids, as published (Tucker et al. 2008 and the
Beam suite). The number of a record therefore says how many of the others exist by then, and the streams refer to each
other correctly if they are driven in these proportions. Bids go to one of the newest hundred auctions, bidders and
sellers are among the newest thousand persons; both may be a little ahead of the other stream, as in the suite. Hot
auctions, bidders and sellers are off, as in the thesis (6.2.1), so that all keys are equally busy; `hot_share` turns
them on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sluice.lab.generator.draws import Bits, Numbers, below, bits, numbers

PERSONS, AUCTIONS, BIDS = 1, 3, 46
"""Of this many events; also the source shares of a query that reads several streams."""

PERSON_SCHEMA = "id BIGINT, name STRING, email STRING, credit_card STRING, city STRING, state STRING, at TIMESTAMP"
AUCTION_SCHEMA = (
    "id BIGINT, item STRING, description STRING, initial_bid BIGINT, reserve BIGINT, at TIMESTAMP, "
    "expires TIMESTAMP, seller BIGINT, category BIGINT"
)
BID_SCHEMA = "auction BIGINT, bidder BIGINT, price BIGINT, at TIMESTAMP"

FIRST_ID = 1000
FIRST_CATEGORY = 10
CATEGORIES = 5
ACTIVE_PERSONS = 1000
AUCTIONS_IN_FLIGHT = 100
LEAD = 10
"""How far an id may be ahead of its stream: some auctions come before their sellers, some bids before theirs."""
HOT_STRIDE = 100
"""One id in a hundred is hot, the newest of them gets the hot share."""

FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
ITEMS = 1000

_TIMESTAMP = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, kw_only=True)
class Bids:
    """`hot_share` of the bids go to one hot auction and come from one hot bidder (the suite: 0.5 and 0.75)."""

    hot_share: float = 0.0

    def __post_init__(self) -> None:
        _check_share(self.hot_share)

    def __call__(self, first: int, count: int, time_s: float, seed: int) -> pa.Table:
        number = numbers(first, count)
        epoch = number // BIDS
        auction = _recent(
            epoch * AUCTIONS + AUCTIONS - 1, AUCTIONS_IN_FLIGHT, bits(number, seed=seed, lane=0), self.hot_share
        )
        bidder = _recent(epoch, ACTIVE_PERSONS, bits(number, seed=seed, lane=1), self.hot_share)
        price = _prices()[bits(number, seed=seed, lane=2) >> np.uint64(48)]
        columns = [pa.array(auction), pa.array(bidder), pa.array(price), _times(time_s, count)]
        return pa.Table.from_arrays(columns, names=["auction", "bidder", "price", "at"])


@dataclass(frozen=True, kw_only=True)
class Auctions:
    """Open between `shortest_s` and `longest_s`; the suite lets an auction live while about a hundred others open."""

    hot_share: float = 0.0
    shortest_s: float = 10.0
    longest_s: float = 20.0

    def __post_init__(self) -> None:
        _check_share(self.hot_share)
        if not 0 < self.shortest_s <= self.longest_s:
            raise ValueError(f"shortest_s must be in (0, longest_s={self.longest_s:g}], got {self.shortest_s:g}")

    def __call__(self, first: int, count: int, time_s: float, seed: int) -> pa.Table:
        number = numbers(first, count)
        drawn = bits(number, seed=seed, lane=3)
        item = below(ITEMS, bits(number, seed=seed, lane=4))
        initial_bid = _prices()[drawn >> np.uint64(48)]
        reserve = initial_bid + _prices()[(drawn >> np.uint64(32)) & np.uint64(0xFFFF)]
        spread_us = round((self.longest_s - self.shortest_s) * 1e6)
        open_us = round(self.shortest_s * 1e6) + below(spread_us + 1, bits(number, seed=seed, lane=5))
        columns = [
            pa.array(number + FIRST_ID),
            _items().take(item),
            _descriptions().take(item),
            pa.array(initial_bid),
            pa.array(reserve),
            _times(time_s, count),
            pa.array(_microseconds(time_s) + open_us).cast(_TIMESTAMP),
            pa.array(
                _recent(number // AUCTIONS, ACTIVE_PERSONS, bits(number, seed=seed, lane=6), self.hot_share),
            ),
            pa.array(FIRST_CATEGORY + below(CATEGORIES, bits(number, seed=seed, lane=7))),
        ]
        names = ["id", "item", "description", "initial_bid", "reserve", "at", "expires", "seller", "category"]
        return pa.Table.from_arrays(columns, names=names)


@dataclass(frozen=True, kw_only=True)
class Persons:
    """Registrations."""

    def __call__(self, first: int, count: int, time_s: float, seed: int) -> pa.Table:
        number = numbers(first, count)
        name = below(len(_names()), bits(number, seed=seed, lane=8))
        columns = [
            pa.array(number + FIRST_ID),
            _names().take(name),
            _emails().take(name),
            _cards().take(below(len(_cards()), bits(number, seed=seed, lane=9))),
            _strings(CITIES).take(below(len(CITIES), bits(number, seed=seed, lane=10))),
            _strings(STATES).take(below(len(STATES), bits(number, seed=seed, lane=11))),
            _times(time_s, count),
        ]
        names = ["id", "name", "email", "credit_card", "city", "state", "at"]
        return pa.Table.from_arrays(columns, names=names)


def _recent(newest: Numbers, window: int, drawn: Bits, hot_share: float) -> Numbers:
    """Ids among the newest `window` of another stream, or a little ahead of it; a share of them the hot one."""
    oldest = np.maximum(newest - (window - 1), 0)
    found = oldest + below(newest - oldest + 1 + LEAD, drawn)
    if hot_share:
        # the lower half of the bits: the upper half has chosen the id
        is_hot = (drawn & np.uint64(0xFFFFFFFF)) < np.uint64(round(hot_share * 2**32))
        found = np.where(is_hot, newest // HOT_STRIDE * HOT_STRIDE, found)
    found += FIRST_ID
    return found


@cache
def _prices() -> npt.NDArray[np.int64]:
    """In cents, evenly on a logarithmic scale from 1 to 1,000,000, as the suite draws them."""
    return np.round(100 * 10 ** (6 * (np.arange(2**16) + 0.5) / 2**16)).astype(np.int64)


def _times(time_s: float, count: int) -> pa.Array:
    return pa.array(np.full(count, _microseconds(time_s))).cast(_TIMESTAMP)


def _microseconds(time_s: float) -> int:
    return round(time_s * 1e6)


def _check_share(hot_share: float) -> None:
    if not 0 <= hot_share <= 1:
        raise ValueError(f"hot_share must be in [0, 1], got {hot_share}")


def _strings(values: tuple[str, ...]) -> pa.Array:
    return pa.array(values, pa.string())


@cache
def _names() -> pa.Array:
    return _strings(tuple(f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES))


@cache
def _emails() -> pa.Array:
    return _strings(tuple(f"{first}.{last}@example.com".lower() for first in FIRST_NAMES for last in LAST_NAMES))


@cache
def _cards() -> pa.Array:
    """Digits in groups of four that are nobody's: real ones never begin with 0."""
    return _strings(tuple(f"0000 {n * 7919 % 10000:04d} {n * 104729 % 10000:04d} {n:04d}" for n in range(10_000)))


@cache
def _items() -> pa.Array:
    return _strings(tuple(f"item {n:03d}" for n in range(ITEMS)))


@cache
def _descriptions() -> pa.Array:
    """About a hundred characters, the average of the suite's auctions."""
    return _strings(tuple((f"lot {n:03d} in good condition, " * 5)[:100] for n in range(ITEMS)))
