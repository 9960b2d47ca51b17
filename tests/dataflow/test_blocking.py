"""Operators before and after a burst work in turn; in a job that flows nobody notices."""

from __future__ import annotations

import pytest

from sluice.dataflow.blocking import SPAN, Blocking, busiest_after, longest_time
from sluice.model import Topology
from tests.policies.jobs import job

LINE = Topology.of(("source", "window", "sink"), (("source", "window"), ("window", "sink")))


def learned(windows, before: Blocking | None = None) -> Blocking:
    """Each window: backpressure of source and window, and the busy share of the sink."""
    blocking = before or Blocking()
    for source, window, sink in windows:
        seen = job(
            "source>window",
            "window>sink",
            source={"parallelism": 1, "backpressure": source},
            window={"parallelism": 1, "backpressure": window},
            sink={"parallelism": 1, "backpressure": 0.0},
        )
        blocking = blocking.learned(seen, {"source": 0.1, "window": 0.1, "sink": sink})
    return blocking


def test_the_busiest_of_all_that_follow_counts():
    after = busiest_after(LINE, {"source": 0.9, "window": 0.2, "sink": 0.5})
    assert (after["source"].name, after["source"].time) == ("sink", 0.5)
    assert after["sink"].name is None


def test_bursts_are_averaged_before_anything_is_concluded():
    burst, rest = (0.8, 0.8, 0.8), (0.0, 0.0, 0.0)
    assert not learned([burst] * (SPAN - 1)).slack
    assert learned([burst, rest] * (SPAN // 2)).slack["window"] == pytest.approx(0.0)


def test_a_job_that_flows_has_slack_and_keeps_its_pace():
    full = learned([(0.3, 0.3, 1.0)] * SPAN)
    assert full.slack["window"] == pytest.approx(0.7)
    assert not full.is_felt
    assert not learned([(0.0, 0.0, 0.6)] * SPAN).slack


def test_times_of_stages_that_work_in_turn_add_up():
    times = {"source": 1.0, "window": 2.0, "sink": 3.0}
    assert longest_time(LINE, times, {}) == 3.0
    assert longest_time(LINE, times, {"window": 0.0}) == 5.0
    assert longest_time(LINE, times, {"window": 0.25}) == 4.0


def test_who_is_no_longer_blocked_at_more_work_has_more_slack():
    tight = learned([(0.4, 0.4, 0.4)] * SPAN)
    assert tight.is_felt
    assert not learned([(0.0, 0.0, 0.8)] * SPAN, tight).is_felt


def test_what_is_learned_survives_as_json():
    blocking = learned([(0.4, 0.4, 0.5)] * (SPAN + 1))
    assert Blocking.from_memory(blocking.to_memory()) == blocking
