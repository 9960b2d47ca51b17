"""The live view draws what a cycle says, unknowns included."""

from __future__ import annotations

import io

from rich.console import Console

from sluice.cli.view import RunView
from sluice.journal.results import CycleReport
from sluice.model import Observation, OperatorMetrics, Recommendation
from tests.journal.records import cycle, outcome


def report(number, *outcomes, proposed=None) -> CycleReport:
    metrics = OperatorMetrics(parallelism=3, input_rate=1234.5, busy=0.5, backpressure=0.25, lag=98_765, latency_s=4.2)
    time_s = 10.0 * (number + 1)
    action = "apply" if outcomes else "none" if proposed is None else "cooldown"
    made = cycle(number, names=("splitter",), action=action, proposed=proposed)
    seen = Observation(time_s=time_s, interval_s=10.0, operators={"splitter": metrics})
    reason = Recommendation(reason=f"because of {time_s:g}")
    return CycleReport(
        made.model_copy(update={"time_s": time_s, "observation": seen, "recommendation": reason}), outcomes
    )


def drawn(view: RunView) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(view)
    return console.file.getvalue()


def test_before_the_first_window_it_says_what_it_waits_for():
    assert "waiting for the first window" in drawn(RunView("wordcount", 300))


def test_a_window_shows_rates_shares_lag_and_what_is_unknown():
    view = RunView("wordcount", 300)
    view.add(report(0))
    text = drawn(view)
    for shown in ("wordcount, 10 of 300 s", "splitter", "1,234", "?", "50%", "25%", "98,765", "4.2"):
        assert shown in text


def test_decisions_are_shown_with_what_became_of_them():
    view = RunView("wordcount", 300)
    view.add(report(0, outcome(0, 1, 3, status="waiting", names=("splitter",))))
    view.add(report(0, outcome(0, 1, 3, names=("splitter",))))
    view.add(report(1, proposed=5))
    view.add(report(2, outcome(2, 1, 3, status="failed", error="no slots left", names=("splitter",))))
    view.add(report(3))
    text = drawn(view)
    for shown in (
        "10 s  splitter 1 -> 3: because of 10",
        "20 s  cooldown: because of 20",
        "30 s  splitter: no slots left: because of 30",
        "40 s  held: because of 40",
    ):
        assert text.count(shown) == 1
