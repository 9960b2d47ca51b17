"""Records that come again and again, later each time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from sluice.lab.backlog import repeated

START = datetime(2027, 1, 1, tzinfo=UTC)


def test_records_come_again_later_and_those_without_a_time_as_they_are():
    times = pa.array([START + timedelta(seconds=s) for s in (0, 1, 4)], pa.timestamp("us", "UTC"))
    bids = pa.table({"price": [1, 2, 3], "time": times})
    names = pa.table({"name": ["a", "b", "c", "d"]})
    make = repeated({"bids": bids, "names": names}, {"bids": "time"}, pieces=2)
    seen = [make(number) for number in range(4)]
    assert [one["bids"]["price"].to_pylist() for one in seen] == [[1], [2, 3]] * 2
    assert [one["names"]["name"].to_pylist() for one in seen] == [["a", "b"], ["c", "d"]] * 2
    assert [one["bids"].schema for one in seen] == [bids.schema] * 4
    seconds = [(time - START).total_seconds() for one in seen for time in one["bids"]["time"].to_pylist()]
    assert seconds == [0, 1, 4, 4, 5, 8]
