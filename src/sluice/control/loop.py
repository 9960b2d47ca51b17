"""The cycle and nothing else: observe, decide, guard, place, reconcile, record.

The cycle is on record before the engine gets its target, what came of it afterwards: no effect goes unrecorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from sluice.control.decider import Answer, Decider, refused
from sluice.control.engine import Engine
from sluice.control.guards import Guards, Situation
from sluice.control.memory import MemoryStore
from sluice.control.state import LoopState, Request
from sluice.journal.file import Journal
from sluice.journal.records import Action, Cycle, End, OperatorOutcome, Outcome, Status
from sluice.journal.results import CycleReport
from sluice.model import Graph, Observation, OperatorChange, Placement, Recommendation, Reconciliation, Target
from sluice.protocol import EMPTY_MEMORY, Memory

SHORTEST_WINDOW = 0.5
"""Of the interval: what a run's end leaves over is on record, but no ground for a decision."""
TOO_SHORT = "the run ends: the window is too short to decide on, so the policy is not asked"

Watcher = Callable[[CycleReport], None]
"""Called after every cycle, and again when more is known of what came of one."""


class Planner(Protocol):
    """Puts instances on workers: the placement and one sentence about it."""

    def __call__(
        self, graph: Graph, parallelism: Mapping[str, int], observation: Observation | None, current: Placement | None
    ) -> tuple[Placement, str]: ...


@dataclass(kw_only=True)
class Loop:
    """Runs one engine with one policy. A dry run does everything but reconcile.

    `fulfil_within_s` is how long requested instances may take to come; after that the shortage is on record and the
    target is what is there.
    """

    engine: Engine
    decider: Decider
    journal: Journal
    guards: Guards = field(default_factory=Guards)
    planner: Planner | None = None
    store: MemoryStore | None = None
    dry_run: bool = False
    fulfil_within_s: float = 120.0

    def run(
        self,
        initial: Target,
        *,
        duration_s: float,
        interval_s: float,
        on_report: Watcher | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start the engine, cycle until the duration is over, and stop it whatever happens."""
        self._on_report = on_report or (lambda _: None)
        self._memory: Memory = self.store.load() if self.store else EMPTY_MEMORY
        self._events: list[str] = []
        self._waiting: CycleReport | None = None
        clock = self.engine.clock
        failure: BaseException | None = None
        try:
            started = self.engine.start(self._placed(initial, None)[0])
            self._state = LoopState(target=started, requested=dict(started.parallelism))
            self._keep_up()
            self.decider.bound(self.guards.most_instances(len(self.engine.graph.names)))
            number = 0
            while clock.now_s() < duration_s and not should_stop():
                window_s = min(interval_s, duration_s - clock.now_s())
                self._wait(window_s, should_stop)
                self.cycle(number, asks=window_s >= SHORTEST_WINDOW * interval_s)
                number += 1
        except BaseException as error:
            failure = error
            raise
        finally:
            records = self.engine.stop()
            self.journal.append(End(time_s=clock.now_s(), records=records, error=_one_line(failure)))
            self.journal.close()

    def _wait(self, duration_s: float, should_stop: Callable[[], bool]) -> None:
        """Let time pass, one tick after the other, so that what was requested is kept up between cycles, too."""
        clock, tick_s = self.engine.clock, self.engine.tick_s
        if tick_s is None:
            clock.sleep_s(duration_s)
            return
        until_s = clock.now_s() + duration_s
        while (left_s := until_s - clock.now_s()) > 0 and not should_stop():
            clock.sleep_s(min(tick_s, left_s))
            self._events += self.engine.maintain()
            self._keep_up()

    def cycle(self, number: int, *, asks: bool = True) -> CycleReport:
        self._events += self.engine.maintain()
        observation = self.engine.observe()
        self._state = self._state.aligned(self.engine.graph)
        answer = self._ask(observation) if asks else Answer(Recommendation.hold(TOO_SHORT), self._memory)
        state = self._state
        guarded = self.guards.apply(
            answer.recommendation,
            Situation(
                target=state.target,
                graph=self.engine.graph,
                observation=observation,
                last_action_s=state.last_action_s,
                shortages=state.shortages,
            ),
        )
        target, notes, problem = guarded.target, guarded.notes, answer.problem
        action: Action = "none"
        if target != state.target:
            action = "cooldown" if guarded.cooling else "dry_run" if self.dry_run else "apply"
        if action in ("apply", "dry_run"):
            try:
                target, sentences = self._placed(target, observation)
                notes += sentences
            except Exception as error:
                target, action, problem = state.target, "none", f"not placed: {type(error).__name__}: {error}"
        report = CycleReport(
            Cycle(
                cycle=number,
                time_s=observation.time_s,
                observation=observation,
                recommendation=answer.recommendation,
                problem=problem,
                notes=notes,
                events=tuple(self._events),
                action=action,
                target=target if action == "apply" else state.target,
                proposed=target if action in ("cooldown", "dry_run") else None,
                requested=state.requested,
            )
        )
        self._events.clear()
        self.journal.append(report.cycle)
        report = self._act(report) if action == "apply" else report
        self._remember(answer)
        self._on_report(report)
        if action != "apply":
            self._keep_up()
        return report

    def _ask(self, observation: Observation) -> Answer:
        cooling_s = self.guards.cooling_s(observation.time_s, self._state.last_action_s)
        if cooling_s > 0 and not self.decider.asks_while_cooling:
            why = f"cooldown: {cooling_s:g} of {self.guards.cooldown_s:g} s left, the policy is not asked"
            return Answer(Recommendation.hold(why), self._memory)
        answer = self.decider.ask(observation, self._memory)
        if answer.recommendation.sizes and "sizes" not in self.engine.abilities:
            return refused("the policy recommends instance sizes, which this engine cannot apply", self._memory)
        if self.store and answer.memory != self._memory and (problem := self.store.problem(answer.memory)):
            return refused(f"the policy's memory cannot be saved: {problem}", self._memory)
        return answer

    def _placed(self, target: Target, observation: Observation | None) -> tuple[Target, tuple[str, ...]]:
        if self.planner is None:
            return target, ()
        current = self._state.target.placement if observation else target.placement
        placement, sentence = self.planner(self.engine.graph, target.parallelism, observation, current)
        return target.model_copy(update={"placement": placement}), (sentence,)

    def _act(self, report: CycleReport) -> CycleReport:
        """Hand a new target to the engine; its effects begin here and nowhere else."""
        cycle, before = report.cycle, self._state
        try:
            found = self.engine.reconcile(cycle.target)
        except Exception as error:
            found = _failed(before, cycle.target, f"{type(error).__name__}: {error}")
        self._state = replace(before, target=cycle.target, request=None).reconciled(found)
        acted = [name for name, change in found.changes.items() if not change.error]
        if acted or not found.changes:
            self._state = replace(self._state, last_action_s=cycle.time_s)
        status = _status(found)
        outcome = Outcome(
            cycle=cycle.cycle,
            time_s=cycle.time_s,
            status=status,
            operators=_parts(found.changes, found.observed),
            downtime_s=found.downtime_s,
            detail=found.detail,
        )
        self.journal.append(outcome)
        report = report.with_outcome(outcome)
        self._waiting = None
        if status == "waiting":
            self._waiting = report
            self._state = replace(self._state, request=Request(self.engine.clock.now_s()))
        elif status == "done":
            self._state = self._state.fulfilled()
        return report

    def _keep_up(self) -> None:
        """Reconcile the target in force: what got lost is requested again, what was awaited may be there."""
        if self.dry_run:
            return
        found = self.engine.reconcile(self._state.target)
        self._state = self._state.reconciled(found)
        self._events += [f"{name}: {change.error}" for name, change in found.changes.items() if change.error]
        missing, request, now_s = self._state.missing, self._state.request, self.engine.clock.now_s()
        if not missing:
            if request is not None:
                self._state = self._state.fulfilled()
                self._conclude("done", now_s, f"there after {now_s - request.since_s:.0f} s")
        elif request is None:
            self._state = replace(self._state, request=Request(now_s))
        elif now_s - request.since_s >= self.fulfil_within_s:
            self._state = self._state.short_of(now_s, self.fulfil_within_s)
            has = ", ".join(f"{name} has {found} of {wanted}" for name, (wanted, found) in missing.items())
            self._conclude("unfulfilled", now_s, f"after {self.fulfil_within_s:g} s {has}")

    def _conclude(self, status: Status, time_s: float, detail: str) -> None:
        if self._waiting is None:
            # not an action of ours: instances were lost
            self._events.append(f"{status}: {detail}")
            return
        first = self._waiting.outcomes[0]
        operators = {
            name: part.model_copy(update={"observed": self._state.observed.get(name, part.observed)})
            for name, part in first.operators.items()
        }
        outcome = Outcome(cycle=first.cycle, time_s=time_s, status=status, operators=operators, detail=detail)
        report, self._waiting = self._waiting.with_outcome(outcome), None
        self.journal.append(outcome)
        self._on_report(report)

    def _remember(self, answer: Answer) -> None:
        if self.store and answer.memory != self._memory:
            try:
                self.store.save(answer.memory)
            except OSError as error:
                self._events.append(f"memory was not saved: {error}")
        self._memory = answer.memory


def _status(found: Reconciliation) -> Status:
    failed = [name for name, change in found.changes.items() if change.error]
    if failed:
        return "failed" if len(failed) == len(found.changes) else "partly"
    arrived = all(found.observed.get(name, count) == count for name, count in found.requested.items())
    return "done" if arrived else "waiting"


def _failed(state: LoopState, target: Target, error: str) -> Reconciliation:
    """An engine that raised has changed nothing that is known."""
    requested = {name: state.requested.get(name, count) for name, count in target.parallelism.items()}
    differ = [name for name, count in target.parallelism.items() if requested[name] != count]
    changes = {
        name: OperatorChange(before=requested[name], requested=target.parallelism[name], error=error)
        for name in differ or requested
    }
    return Reconciliation(requested=requested, observed=state.observed or requested, changes=changes, detail=error)


def _parts(changes: Mapping[str, OperatorChange], observed: Mapping[str, int]) -> dict[str, OperatorOutcome]:
    return {
        name: OperatorOutcome(
            before=change.before,
            requested=change.requested,
            observed=observed.get(name, change.before),
            error=change.error,
        )
        for name, change in changes.items()
    }


def _one_line(failure: BaseException | None) -> str | None:
    return None if failure is None else " ".join(f"{type(failure).__name__}: {failure}".split())
