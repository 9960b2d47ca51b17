"""The producer writes what is due, exactly, says when it is late, and goes on where it was."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import SluiceError
from sluice.lab.generator.nexmark import Bids
from sluice.lab.generator.process import GeneratorProcess
from sluice.lab.generator.producer import Producer, Stream
from sluice.lab.generator.schedule import Schedule
from sluice.spark.topic import Topic


def steady(rate):
    return lambda times_s: np.full(times_s.shape, float(rate))


def rising(times_s):
    return 10.7 * times_s


class FakeTime:
    """A clock that only moves when somebody waits or works; ends the producer at a given time."""

    def __init__(self, end_s: float) -> None:
        self.now_s = 1000.0
        self.end_s = 1000.0 + end_s

    def wait(self, timeout_s: float) -> bool:
        self.now_s += timeout_s
        return self.now_s >= self.end_s


def bids_topic(folder: Path) -> Path:
    Topic.create(folder / "bids", Bids()(0, 1, 0, 0).schema)
    return folder / "bids"


def produce(topic: Path, curve, end_s: float, generate=None, warn=lambda line: None):
    clock = FakeTime(end_s)
    stream = Stream(generate=generate or Bids(), curve=curve)
    producer = Producer({"bids": stream}, {"bids": topic}, seed=7, warn=warn, now_s=lambda: clock.now_s)
    if generate:
        generate.clock = clock
    return producer.run(clock)


def records(topic: Path) -> pa.Table:
    opened = Topic.open(topic)
    return pa.Table.from_batches(opened.read(opened.start_offset(), opened.end_offset()), opened.schema)


@settings(max_examples=30)
@given(rate=st.floats(0, 1e6), ticks=st.integers(1, 200), cut=st.integers(0, 200))
def test_blocks_follow_each_other_without_gaps_and_add_up_to_the_rate(rate, ticks, cut):
    schedule = Schedule(steady(rate), tick_s=0.25)
    blocks = [schedule.next() for _ in range(ticks)]
    assert all(after.first == before.first + before.count for before, after in itertools.pairwise(blocks))
    assert sum(block.count for block in blocks) == pytest.approx(rate * 0.25 * ticks, abs=1 + 1e-6 * ticks)
    later = Schedule(steady(rate), tick_s=0.25, tick=min(cut, ticks - 1))
    assert later.next() == blocks[min(cut, ticks - 1)]


def test_what_is_due_is_in_the_topic_with_the_time_it_was_due(tmp_path):
    topic = bids_topic(tmp_path)
    report = produce(topic, rising, end_s=10.1).streams["bids"]
    found = records(topic)
    assert report.produced == report.scheduled == found.num_rows == pytest.approx(10.7 * 10**2 / 2, rel=0.05)
    assert found["auction"].equals(Bids()(0, found.num_rows, 0, 7)["auction"])
    times_s = {at.timestamp() for at in found["at"].to_pylist()}
    assert min(times_s) > 1000
    assert max(times_s) == 1010
    assert len(times_s) <= 40


def test_a_restarted_producer_neither_repeats_nor_skips(tmp_path):
    once, twice = bids_topic(tmp_path / "once"), bids_topic(tmp_path / "twice")
    produce(once, rising, end_s=8.1)
    produce(twice, rising, end_s=5.1)
    produce(twice, rising, end_s=3.1)
    assert records(twice)["price"].equals(records(once)["price"])


class Slow:
    """Takes longer for a block than there is until the next."""

    clock: FakeTime

    def __call__(self, first, count, time_s, seed):
        self.clock.now_s += 0.5
        return Bids()(first, count, time_s, seed)


def test_a_producer_that_falls_behind_says_so_and_drops_nothing(tmp_path):
    topic = bids_topic(tmp_path)
    lines: list[str] = []
    report = produce(topic, steady(400), end_s=20, generate=Slow(), warn=lines.append)
    stream = report.streams["bids"]
    assert stream.produced == records(topic).num_rows == 100 * 40
    assert stream.scheduled == pytest.approx(2 * stream.produced, rel=0.05)
    assert stream.worst_behind_s > 9
    assert not report.kept_up
    assert stream.rate == pytest.approx(200, rel=0.05)
    assert 2 <= len(lines) <= 5
    assert "'bids' is 1" in lines[0]


def test_the_process_writes_until_it_is_stopped(tmp_path):
    topic = bids_topic(tmp_path)
    stream = Stream(generate=Bids(), curve=steady(4000))
    process = GeneratorProcess({"bids": stream}, seed=7, report=tmp_path / "report.json")
    process.start({"bids": topic})
    try:
        deadline_s = time.monotonic() + 60
        while Topic.open(topic).end_offset() < 3000:
            process.check()
            assert time.monotonic() < deadline_s
            threading.Event().wait(0.05)
    finally:
        report = process.stop()
    assert report.streams["bids"].produced == records(topic).num_rows
    assert records(topic)["price"].equals(Bids()(0, records(topic).num_rows, 0, 7)["price"])


def test_a_process_that_gets_no_order_ends_without_a_word(tmp_path, capfd):
    process = GeneratorProcess({}, seed=7, report=tmp_path / "report.json")
    process.stop()
    assert process._process.returncode == 0
    assert capfd.readouterr().err == ""


def broken(first, count, time_s, seed):
    raise RuntimeError("no more bids")


def test_a_generator_that_dies_is_noticed_with_its_reason(tmp_path, capfd):
    topic = bids_topic(tmp_path)
    stream = Stream(generate=broken, curve=steady(100))
    process = GeneratorProcess({"bids": stream}, seed=7, report=tmp_path / "report.json")
    process.start({"bids": topic})
    try:
        process._process.wait(60)
        with pytest.raises(SluiceError, match="RuntimeError: no more bids"):
            process.check()
    finally:
        process.stop()
    assert "no more bids" in capfd.readouterr().err
