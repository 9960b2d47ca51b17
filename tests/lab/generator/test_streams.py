"""Streams: records depend on their number alone, refer to each other, and keep the published proportions."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.lab.generator import nexmark
from sluice.lab.generator.ads import AdEvents
from sluice.lab.generator.images import Images
from sluice.lab.generator.nexmark import Auctions, Bids, Persons
from sluice.lab.generator.words import Lines

TIME_S = 1_800_000_000.25
STREAMS = [
    Bids(),
    Bids(hot_share=0.5),
    Auctions(),
    Auctions(hot_share=0.75),
    Persons(),
    Lines(),
    Lines(skew=1.0),
    AdEvents(),
    Images(side=8),
]


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
@settings(max_examples=15)
@given(first=st.integers(0, 10**12), cut=st.integers(0, 60), seed=st.integers(0, 2**32))
def test_cutting_a_stream_into_blocks_changes_no_record(stream, first, cut, seed):
    whole = stream(first, 60, TIME_S, seed)
    parts = pa.concat_tables([stream(first, cut, TIME_S, seed), stream(first + cut, 60 - cut, TIME_S, seed)])
    assert whole.equals(parts.combine_chunks()) or whole.to_pylist() == parts.to_pylist()


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_another_seed_gives_other_records(stream):
    assert stream(0, 100, TIME_S, 1).to_pylist() != stream(0, 100, TIME_S, 2).to_pylist()


def test_fifty_events_are_one_person_three_auctions_and_forty_six_bids():
    assert (nexmark.PERSONS, nexmark.AUCTIONS, nexmark.BIDS) == (1, 3, 46)
    epochs = 2000
    auctions = Auctions()(0, epochs * nexmark.AUCTIONS, TIME_S, 0)
    bids = Bids()(0, epochs * nexmark.BIDS, TIME_S, 0)
    newest_person = nexmark.FIRST_ID + epochs + nexmark.LEAD
    newest_auction = nexmark.FIRST_ID + epochs * nexmark.AUCTIONS + nexmark.LEAD
    for ids, newest in (
        (auctions["seller"], newest_person),
        (bids["bidder"], newest_person),
        (bids["auction"], newest_auction),
    ):
        assert min(ids.to_pylist()) >= nexmark.FIRST_ID
        assert max(ids.to_pylist()) < newest


def test_without_hot_keys_every_auction_gets_its_fifteen_bids_or_so():
    bids = Bids()(10**6, 460_000, TIME_S, 3)
    counts = np.unique(bids["auction"].to_numpy(), return_counts=True)[1]
    assert counts.mean() == pytest.approx(nexmark.BIDS / nexmark.AUCTIONS, rel=0.02)
    assert counts.max() < 50


def test_a_hot_share_of_the_bids_goes_to_one_auction_in_a_hundred():
    bids = Bids(hot_share=0.5)(10**6, 100_000, TIME_S, 3)
    hot = (bids["auction"].to_numpy() - nexmark.FIRST_ID) % nexmark.HOT_STRIDE == 0
    assert hot.mean() == pytest.approx(0.5, abs=0.02)


def test_prices_are_spread_over_six_orders_of_magnitude():
    prices = Bids()(0, 100_000, TIME_S, 0)["price"].to_numpy()
    assert prices.min() < 110
    assert prices.max() > 90_000_000
    assert np.median(prices) == pytest.approx(100_000, rel=0.1)


def test_auctions_expire_within_their_bounds():
    auctions = Auctions(shortest_s=3, longest_s=4)(0, 1000, TIME_S, 0)
    open_s = [(closing - opening).total_seconds() for opening, closing in zip(*_times(auctions), strict=True)]
    assert min(open_s) >= 3
    assert max(open_s) <= 4


def _times(auctions):
    return auctions["at"].to_pylist(), auctions["expires"].to_pylist()


def test_zipf_makes_the_first_word_by_far_the_most_frequent():
    text = " ".join(Lines(skew=1.0, vocabulary=1000)(0, 4000, TIME_S, 0)["line"].to_pylist()).split()
    words, counts = np.unique(text, return_counts=True)
    assert len(text) == 20_000
    assert words[counts.argmax()] == "ba"
    assert counts.max() > 50 * np.median(counts)


def test_ad_events_are_json_and_a_third_are_views():
    events = [json.loads(text) for text in AdEvents()(0, 30_000, TIME_S, 0)["event"].to_pylist()]
    assert {event["event_time"] for event in events} == {round(TIME_S * 1e6)}
    views = sum(event["event_type"] == "view" for event in events)
    assert views / len(events) == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Bids(hot_share=1.5), "1.5"),
        (lambda: Auctions(shortest_s=0), "0"),
        (lambda: Lines(words_per_line=0), "0"),
        (lambda: AdEvents(campaigns=-3), "-3"),
        (lambda: Images(side=12), "12"),
    ],
)
def test_a_refused_parameter_is_quoted(make, named):
    with pytest.raises(ValueError, match=named):
        make()
