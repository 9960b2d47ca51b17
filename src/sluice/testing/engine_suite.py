"""What the loop may rely on, whatever the engine.

In a test module, inherit `EngineSuite` and override its fixture with an engine that is not started yet. One of its
operators, `busy`, gets more records than one instance can process, so that more instances do more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from sluice.control.engine import Engine, wait
from sluice.model import Observation, OperatorChange, Target


class EngineSuite:
    """`initial` and `grown` are the parallelisms before and after a rescale that changes `busy` only."""

    busy: ClassVar[str] = "work"
    initial: ClassVar[dict[str, int]] = {"source": 1, "work": 1}
    grown: ClassVar[dict[str, int]] = {"source": 1, "work": 3}
    window_s: ClassVar[float] = 10.0
    tolerance_s: ClassVar[float] = 0.0
    """How far the engine's clock may be off what was slept: 0 for simulated time."""
    patience_s: ClassVar[float] = 60.0
    """How long requested instances may take to come."""

    @pytest.fixture
    def engine(self) -> Engine:
        raise NotImplementedError("override the fixture `engine` with the engine to check")

    @pytest.fixture
    def running(self, engine: Engine) -> Iterator[Engine]:
        engine.start(Target(parallelism=self.initial))
        yield engine
        engine.stop()

    def test_time_starts_at_zero_and_passes_while_sleeping(self, running: Engine) -> None:
        assert running.clock.now_s() == pytest.approx(0, abs=self.tolerance_s)
        wait(running, self.window_s)
        assert running.clock.now_s() == pytest.approx(self.window_s, abs=self.tolerance_s)

    def test_a_window_covers_the_time_since_the_last_one(self, running: Engine) -> None:
        wait(running, self.window_s)
        first = running.observe()
        wait(running, self.window_s / 2)
        second = running.observe()
        assert second.time_s - first.time_s == pytest.approx(second.interval_s, abs=self.tolerance_s)
        assert second.interval_s == pytest.approx(self.window_s / 2, abs=self.tolerance_s)

    def test_an_observation_names_the_operators_and_edges_of_the_graph(self, running: Engine) -> None:
        seen = self._observed(running, lambda seen: len(seen.latency_samples_s) > 0, "latency")
        assert set(seen.operators) == set(running.graph.names)
        assert set(seen.edges) == {edge.ends for edge in running.graph.edges}
        assert seen.parallelism == self.initial

    def test_reconciling_requests_what_differs_and_says_so(self, running: Engine) -> None:
        wait(running, self.window_s)
        running.observe()
        reconciliation = running.reconcile(Target(parallelism=self.grown))
        changed = OperatorChange(before=self.initial[self.busy], requested=self.grown[self.busy])
        assert reconciliation.changes == {self.busy: changed}
        assert reconciliation.requested == self.grown
        self._until_there(running, self.grown)
        wait(running, self.window_s)
        assert running.observe().parallelism == self.grown

    def test_more_instances_do_more(self, running: Engine) -> None:
        wait(running, self.window_s)
        running.observe()
        before = self._observed(running, lambda seen: self._busy_rate(seen) is not None, "rate")
        least = 1.2 * (self._busy_rate(before) or 0.0)
        self._until_there(running, self.grown)
        self._observed(running, lambda seen: (self._busy_rate(seen) or 0.0) > least, f"rate above {least:g}")

    def test_the_same_target_changes_nothing(self, running: Engine) -> None:
        wait(running, self.window_s)
        running.observe()
        reconciliation = running.reconcile(Target(parallelism=self.initial))
        assert reconciliation.changes == {}
        assert reconciliation.downtime_s == 0
        assert reconciliation.requested == self.initial

    def test_stopping_counts_every_record_and_may_be_called_twice(self, running: Engine) -> None:
        wait(running, 2 * self.window_s)
        self._until_there(running, dict.fromkeys(self.initial, 2))
        wait(running, 2 * self.window_s)
        counted = running.stop()
        assert counted.arrived == counted.processed + counted.waiting
        assert counted.lost in (0, None)
        assert counted.duplicated in (0, None)
        assert running.stop() == counted

    def _until_there(self, running: Engine, parallelism: dict[str, int]) -> None:
        """Reconcile until what is requested is there, as the loop does."""
        target = Target(parallelism=parallelism)
        deadline_s = running.clock.now_s() + self.patience_s
        while (reconciliation := running.reconcile(target)).observed != parallelism:
            assert running.clock.now_s() < deadline_s, f"requested {parallelism}, there: {reconciliation.observed}"
            wait(running, running.tick_s or self.window_s)

    def _observed(self, running: Engine, condition: Callable[[Observation], bool], what: str) -> Observation:
        """The first window for which the condition holds: one of a real engine may be without a finished batch."""
        deadline_s = running.clock.now_s() + self.patience_s
        while True:
            wait(running, self.window_s)
            if condition(seen := running.observe()):
                return seen
            assert running.clock.now_s() < deadline_s, f"no {what} within {self.patience_s:g} s: {seen}"

    def _busy_rate(self, seen: Observation) -> float | None:
        return seen.operators[self.busy].input_rate
