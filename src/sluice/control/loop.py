"""The cycle and nothing else: observe, decide, guard, place, apply, record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sluice.control.decider import Answer, Decider
from sluice.control.engine import Engine
from sluice.control.guards import Guards
from sluice.control.memory import MemoryStore
from sluice.journal.file import Entry, Journal
from sluice.model import Graph, Observation, Outcome, Placement, Recommendation, Target
from sluice.policy import EMPTY_MEMORY, Memory

SHORTEST_WINDOW = 0.5
"""Of the interval: what a run's end leaves over is noted, but no ground for a decision."""
TOO_SHORT = "the run ends: too short a window to decide on, the policy is not asked"


class Planner(Protocol):
    """Puts instances on workers: the placement and one sentence about it."""

    def __call__(
        self, graph: Graph, parallelism: Mapping[str, int], observation: Observation | None, current: Placement | None
    ) -> tuple[Placement, str]: ...


@dataclass(kw_only=True)
class Loop:
    """Runs one engine with one policy. `dry_run` does everything but apply."""

    engine: Engine
    decider: Decider
    journal: Journal
    guards: Guards = field(default_factory=Guards)
    planner: Planner | None = None
    store: MemoryStore | None = None
    dry_run: bool = False

    def run(
        self,
        initial: Target,
        *,
        duration_s: float,
        interval_s: float,
        on_cycle: Callable[[Entry], None] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start the engine, cycle until the duration is over, and stop it whatever happens."""
        self._plan = self._placed(initial, None)
        self._memory: Memory = self.store.load() if self.store else EMPTY_MEMORY
        self._last_rescale_s: float | None = None
        clock = self.engine.clock
        try:
            self.engine.start(self._plan)
            number = 0
            while clock.now_s() < duration_s and not should_stop():
                window_s = min(interval_s, duration_s - clock.now_s())
                clock.sleep_s(window_s)
                entry = self.cycle(number, asks=window_s >= SHORTEST_WINDOW * interval_s)
                if on_cycle:
                    on_cycle(entry)
                number += 1
        finally:
            counted = self.engine.stop()
            self.journal.append({"kind": "end", "time_s": clock.now_s(), "records": counted.to_data()})
            self.journal.close()

    def cycle(self, number: int, *, asks: bool = True) -> Entry:
        observation = self.engine.observe()
        answer = self._ask(observation) if asks else Answer(Recommendation.hold(TOO_SHORT), self._memory)
        guarded = self.guards.apply(
            answer.decision, observation.parallelism, self.engine.graph, observation.time_s, self._last_rescale_s
        )
        plan = Target(parallelism=guarded.parallelism, sizes=answer.decision.sizes, notes=guarded.notes)
        changes = plan.parallelism != observation.parallelism or bool(plan.sizes and plan.sizes != self._plan.sizes)
        applied = None
        if changes and not guarded.cooling:
            plan, applied = self._act(plan, observation)
        self._remember(answer.memory)
        entry = {
            "kind": "cycle",
            "cycle": number,
            "time_s": observation.time_s,
            "observation": observation.to_data(),
            "decision": answer.decision.to_data(),
            "problem": answer.problem,
            "plan": plan.to_data(),
            "cooling": guarded.cooling,
            "dry_run": self.dry_run,
            "applied": applied.to_data() if applied else None,
        }
        self.journal.append(entry)
        return entry

    def _ask(self, observation: Observation) -> Answer:
        cooling_s = self.guards.cooling_s(observation.time_s, self._last_rescale_s)
        if cooling_s > 0 and not self.decider.asks_while_cooling:
            told = f"cool-down: {cooling_s:g} of {self.guards.cooldown_s:g} s left, the policy is not asked"
            return Answer(Recommendation.hold(told), self._memory)
        return self.decider.ask(observation, self._memory)

    def _act(self, plan: Target, observation: Observation) -> tuple[Target, Outcome | None]:
        try:
            plan = self._placed(plan, observation)
            if self.dry_run:
                return plan, None
            applied = self.engine.apply(plan)
        except Exception as error:
            return plan, Outcome(error=f"{type(error).__name__}: {error}")
        if applied.error is None:
            self._plan = plan
            self._last_rescale_s = observation.time_s
        return plan, applied

    def _placed(self, plan: Target, observation: Observation | None) -> Target:
        if self.planner is None:
            return plan
        current = self._plan.placement if observation else plan.placement
        placement, sentence = self.planner(self.engine.graph, plan.parallelism, observation, current)
        return plan.model_copy(update={"placement": placement, "notes": (*plan.notes, sentence)})

    def _remember(self, memory: Memory) -> None:
        if self.store and memory != self._memory:
            self.store.save(memory)
        self._memory = memory
