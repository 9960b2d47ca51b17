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
from sluice.control.limits import most_slots
from sluice.control.memory import MemoryStore
from sluice.control.state import LoopState, Request
from sluice.control.switches import ControlRequest, Overrides, Switchboard
from sluice.journal.file import Journal
from sluice.journal.records import Action, Cycle, End, Intervention, OperatorOutcome, Outcome, Shadow, Status
from sluice.journal.results import CycleReport
from sluice.model import (
    ActionCost,
    Graph,
    Observation,
    OperatorChange,
    Placement,
    Recommendation,
    Reconciliation,
    Target,
)
from sluice.protocol import EMPTY_MEMORY, Memory

SHORTEST_WINDOW = 0.5
"""Of the interval: what a run's end leaves over is on record, but no ground for a decision."""
PAUSED = "paused by hand: the policy is not asked"
TOO_SHORT = "the run ends: the window is too short to decide on, so the policy is not asked"

Watcher = Callable[[CycleReport], None]
"""Called after every cycle, and again when more is known of what came of one."""


class Planner(Protocol):
    """Puts instances on workers: the placement and one sentence about it."""

    def __call__(
        self, graph: Graph, parallelism: Mapping[str, int], observation: Observation | None, current: Placement | None
    ) -> tuple[Placement, str]: ...


@dataclass(frozen=True)
class Review:
    """What became of the workers since tasks were placed: the slots there are, and why to place anew, if at all."""

    slots: int
    outdated: str | None = None


Reviewer = Callable[[Observation, Target], Review]


@dataclass(kw_only=True)
class Loop:
    """Runs one engine with one policy. A dry run does everything but reconcile.

    `shadows` are asked in every cycle and put on record, and never acted on; each keeps its own memory.
    `fulfil_within_s` is how long requested instances may take to come; after that the shortage is on record and the
    target is what is there.
    """

    engine: Engine
    decider: Decider
    journal: Journal
    guards: Guards = field(default_factory=Guards)
    planner: Planner | None = None
    reviewer: Reviewer | None = None
    """Where workers come and go or get hot: asked every cycle whether the placement still holds."""
    store: MemoryStore | None = None
    shadows: Mapping[str, Decider] = field(default_factory=dict)
    dry_run: bool = False
    fulfil_within_s: float = 120.0
    switches: Switchboard = field(default_factory=Switchboard)

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
        self._remembered_s = self.store.time_s() if self.store else 0.0
        self._shadow_memories: dict[str, Memory] = dict.fromkeys(self.shadows, EMPTY_MEMORY)
        self._events: list[str] = []
        self._waiting: CycleReport | None = None
        self._overrides = Overrides(dry_run=self.dry_run)
        self._memories: dict[str, Memory] = {}
        clock = self.engine.clock
        failure: BaseException | None = None
        number = 0
        try:
            started = self.engine.start(self._placed(initial, None)[0])
            self._state = LoopState(target=started, requested=dict(started.parallelism))
            self._keep_up()
            self._obey(number)
            for decider in (self.decider, *self.shadows.values()):
                decider.bound(self.guards.most_instances(len(self.engine.graph.names)))
            while clock.now_s() < duration_s and not should_stop():
                window_s = min(interval_s, duration_s - clock.now_s())
                self._wait(window_s, should_stop)
                self.cycle(number, asks=window_s >= SHORTEST_WINDOW * interval_s)
                number += 1
        except BaseException as error:
            failure = error
            raise
        finally:
            try:
                for request in self.switches.close():
                    self._note(request, number, error="the run ended before the next cycle")
                records = self.engine.stop()
                self.journal.append(End(time_s=clock.now_s(), records=records, error=_one_line(failure)))
            finally:
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
        observation = self._with_cost(self.engine.observe())
        self._state = self._state.aligned(self.engine.graph)
        self._obey(number)
        answer = self._ask(observation) if asks else Answer(Recommendation.hold(TOO_SHORT), self._memory)
        state = self._state = self._state.recommended(answer.recommendation)
        review = self.reviewer(observation, state.target) if self.reviewer else None
        guards = self.guards.within(review.slots) if review else self.guards
        situation = Situation(
            target=state.target,
            graph=self.engine.graph,
            observation=observation,
            last_action_s=state.last_action_s,
            shortages=state.shortages,
            pinned=self._overrides.pinned,
        )
        guarded = guards.apply(answer.recommendation, situation)
        target, notes, problem = guarded.target, guarded.notes, answer.problem
        action: Action = "none"
        if target != state.target:
            action = "cooldown" if guarded.cooling else "dry_run" if self._overrides.dry_run else "apply"
        if review and review.outdated and action in ("none", "cooldown"):
            # where tasks run cannot wait for a cooldown: it is for how many there are
            target = guards.fit(state.target, self.engine.graph)
            action = "dry_run" if self._overrides.dry_run else "apply"
            notes = (f"placed anew: {review.outdated}",)
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
                shadows=self._ask_shadows(situation) if asks else {},
            )
        )
        self._events.clear()
        self.journal.append(report.cycle)
        report = self._act(report) if action == "apply" else report
        self._remember(answer, observation.time_s)
        self._on_report(report)
        if action != "apply":
            self._keep_up()
        return report

    def _obey(self, number: int) -> None:
        """Apply what people asked for since the last cycle."""
        for request in self.switches.take(tuple(self._state.target.parallelism)):
            gone = request.control == "pin" and request.operator not in self._state.target.parallelism
            self._note(request, number, error=f"operator {request.operator!r} is gone" if gone else None)
            if not gone:
                self._change_policy(request)
                self._overrides = self._overrides.after(request)
        self.switches.show(self._overrides)

    def _change_policy(self, request: ControlRequest) -> None:
        """Each policy has its own memory. A file of the one that began is not given another's: it stays as it is."""
        if request.decider is None or request.policy is None:
            return
        before = self._overrides.policy
        self._memories[before.label if before else ""] = self._memory
        self._memory = self._memories.get(request.policy.label, EMPTY_MEMORY)
        self.decider, self.store = request.decider, None

    def _note(self, request: ControlRequest, number: int, error: str | None) -> None:
        self.journal.append(
            Intervention(
                cycle=number,
                time_s=self.engine.clock.now_s(),
                control=request.control,
                operator=request.operator,
                parallelism=request.parallelism,
                policy=request.policy,
                on=request.on,
                error=error,
            )
        )

    def _ask(self, observation: Observation) -> Answer:
        if self._overrides.paused:
            return Answer(Recommendation.hold(PAUSED), self._memory)
        answer = self.decider.ask(_later(observation, self._remembered_s), self._memory)
        if answer.recommendation.sizes and "sizes" not in self.engine.abilities:
            return refused("the policy recommends instance sizes, which this engine cannot apply", self._memory)
        if answer.recommendation.shared_nodes and "shared_nodes" not in self.engine.abilities:
            return refused(
                "the policy recommends nodes that operators share, which this engine cannot apply", self._memory
            )
        if self.store and answer.memory != self._memory and (problem := self.store.problem(answer.memory)):
            return refused(f"the policy's memory cannot be saved: {problem}", self._memory)
        return answer

    def _ask_shadows(self, situation: Situation) -> dict[str, Shadow]:
        free = replace(situation, last_action_s=None)
        recorded = {}
        for name, decider in self.shadows.items():
            answer = decider.ask(situation.observation, self._shadow_memories[name])
            self._shadow_memories[name] = answer.memory
            target = self.guards.apply(answer.recommendation, free).target
            recorded[name] = Shadow(
                parallelism=target.parallelism, reason=answer.recommendation.reason, problem=answer.problem
            )
        return recorded

    def _with_cost(self, observation: Observation) -> Observation:
        """An engine reports what it saw; what an action costs is seen here."""
        state = self._state
        cost = ActionCost(
            downtime_s=state.downtime_s,
            start_s=state.start_s,
            cooldown_s=self.guards.cooldown_s,
            cooling_s=self.guards.cooling_s(observation.time_s, state.last_action_s),
            most_slots=most_slots(self.guards, self.engine.graph),
        )
        return observation.model_copy(update={"action_cost": cost})

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
            reconciliation = self.engine.reconcile(cycle.target)
        except Exception as error:
            reconciliation = _failed(before, cycle.target, f"{type(error).__name__}: {error}")
        self._state = replace(before, target=cycle.target, request=None).reconciled(reconciliation)
        acted = [name for name, change in reconciliation.changes.items() if not change.error]
        if acted or not reconciliation.changes:
            self._state = replace(self._state, last_action_s=cycle.time_s, downtime_s=reconciliation.downtime_s)
        status = _status(reconciliation)
        outcome = Outcome(
            cycle=cycle.cycle,
            time_s=cycle.time_s,
            status=status,
            operators=_parts(reconciliation.changes, reconciliation.observed),
            downtime_s=reconciliation.downtime_s,
            detail=reconciliation.detail,
        )
        self.journal.append(outcome)
        report = report.with_outcome(outcome)
        self._waiting = None
        if status == "waiting":
            self._waiting = report
            self._state = replace(self._state, request=Request(self.engine.clock.now_s(), self._state.is_short))
        elif status == "done":
            self._state = self._state.fulfilled()
        return report

    def _keep_up(self) -> None:
        """Reconcile the target in force: what got lost is requested again, what was awaited may be there."""
        if self._overrides.dry_run:
            return
        try:
            reconciliation = self.engine.reconcile(self._state.target)
        except Exception as error:  # the next tick tries again
            event = f"not reconciled: {_one_line(error)}"
            self._events += [event] if event not in self._events else []
            return
        self._state = self._state.reconciled(reconciliation)
        self._events += [f"{name}: {change.error}" for name, change in reconciliation.changes.items() if change.error]
        missing, request, now_s = self._state.missing, self._state.request, self.engine.clock.now_s()
        if not missing:
            if request is not None:
                self._complete(request, now_s)
        elif request is None or (self._state.is_short and not request.grows):
            self._state = replace(self._state, request=Request(now_s, self._state.is_short))
        elif now_s - request.since_s >= self.fulfil_within_s:
            self._state = self._state.short_of(now_s, self.fulfil_within_s)
            has = ", ".join(f"{name} has {observed} of {requested}" for name, (requested, observed) in missing.items())
            self._conclude("unfulfilled", now_s, f"after {self.fulfil_within_s:g} s {has}")

    def _complete(self, request: Request, now_s: float) -> None:
        """All is as requested. How long instances take to leave says nothing about how long they take to come."""
        took_s = now_s - request.since_s
        self._state = replace(self._state.fulfilled(), start_s=took_s if request.grows else self._state.start_s)
        if self._waiting is not None:
            self._conclude("done", now_s, f"there after {took_s:.0f} s")
        elif request.grows:
            self._events.append(f"missing instances came after {took_s:.0f} s")

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

    def _remember(self, answer: Answer, time_s: float) -> None:
        if self.store and answer.memory != self._memory:
            try:
                self.store.save(answer.memory, self._remembered_s + time_s)
            except OSError as error:
                self._events.append(f"memory was not saved: {error}")
        self._memory = answer.memory


def _later(observation: Observation, by_s: float) -> Observation:
    """The observation at a policy's own time, which goes on where its memory was saved."""
    return observation.model_copy(update={"time_s": observation.time_s + by_s}) if by_s else observation


def _status(reconciliation: Reconciliation) -> Status:
    failed = [name for name, change in reconciliation.changes.items() if change.error]
    if failed:
        return "failed" if len(failed) == len(reconciliation.changes) else "partly"
    arrived = all(reconciliation.observed.get(name, count) == count for name, count in reconciliation.requested.items())
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
