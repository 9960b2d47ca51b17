"""The live view draws what a cycle says, unknowns included."""

from __future__ import annotations

import io

from rich.console import Console

from sluice.cli.view import RunView


def entry(time_s: float, *, applied=None, cooling: bool = False, busy: float | None = 0.5) -> dict:
    metrics = {
        "parallelism": 3,
        "input_rate": 1234.5,
        "output_rate": None,
        "busy": busy,
        "backpressure": 0.25,
        "lag": 98_765.0,
        "latency_s": 4.2,
    }
    return {
        "time_s": time_s,
        "observation": {"time_s": time_s, "operators": {"splitter": metrics}},
        "decision": {"reason": f"because of {time_s:g}"},
        "applied": applied,
        "cooling": cooling,
    }


def drawn(view: RunView) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(view)
    return console.file.getvalue()


def test_before_the_first_window_it_says_what_it_waits_for():
    assert "waiting for the first window" in drawn(RunView("wordcount", 300))


def test_a_window_shows_rates_shares_lag_and_what_is_unknown():
    view = RunView("wordcount", 300)
    view.add(entry(10))
    text = drawn(view)
    for shown in ("wordcount, 10 of 300 s", "splitter", "1,234", "?", "50%", "25%", "98,765", "4.2"):
        assert shown in text


def test_decisions_are_shown_with_what_became_of_them():
    view = RunView("wordcount", 300)
    view.add(entry(10, applied={"changed": {"splitter": (1, 3)}, "error": None}))
    view.add(entry(20, cooling=True))
    view.add(entry(30, applied={"changed": {}, "error": "no slots left"}))
    view.add(entry(40))
    text = drawn(view)
    for shown in (
        "10 s  splitter 1 -> 3: because of 10",
        "20 s  cooling down: because of 20",
        "30 s  no slots left: because of 30",
        "40 s  held: because of 40",
    ):
        assert shown in text
