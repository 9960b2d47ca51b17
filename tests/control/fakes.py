"""An engine without effects, a policy that follows a script, and a loop of the two."""

from dataclasses import dataclass, field

from sluice.control.decider import Decider
from sluice.control.engine import RecordCount
from sluice.control.loop import Loop
from sluice.journal.file import MemoryJournal
from sluice.model import (
    Graph,
    Observation,
    Operator,
    OperatorChange,
    OperatorMetrics,
    Recommendation,
    Reconciliation,
    Target,
)


@dataclass
class FakeEngine:
    """Does what it is asked at once, unless `fails` says otherwise or there is only room for so many instances."""

    graph: Graph = field(default_factory=lambda: Graph(operators=(Operator(name="a"),)))
    fails: list[Exception | dict[str, str]] = field(default_factory=list)
    room: int | None = None
    tick_s: float | None = None
    abilities: frozenset = frozenset({"placement", "sizes"})
    busy: dict[str, float] = field(default_factory=dict)
    repairs: list[str] = field(default_factory=list)
    target: Target | None = None
    requests: list[dict[str, int]] = field(default_factory=list)
    reconciled: int = 0
    stopped: int = 0
    time_s: float = 0.0

    @property
    def clock(self):
        return self

    def now_s(self):
        return self.time_s

    def sleep_s(self, duration_s):
        self.time_s += duration_s

    def start(self, target):
        self.target = target
        return target

    def maintain(self):
        repairs, self.repairs = tuple(self.repairs), []
        return repairs

    def observe(self):
        metrics = {
            name: OperatorMetrics(parallelism=max(1, count), busy=self.busy.get(name))
            for name, count in self.there(self.graph.names).items()
        }
        return Observation(time_s=self.time_s, interval_s=10, operators=metrics)

    def there(self, names):
        counts = {name: self.target.parallelism.get(name, 1) for name in names}
        return {name: min(count, self.room) if self.room is not None else count for name, count in counts.items()}

    def reconcile(self, target):
        self.reconciled += 1
        before = self.target
        if target == before:
            return Reconciliation(requested=target.parallelism, observed=self.there(target.parallelism))
        errors = self.fails.pop(0) if self.fails else {}
        if isinstance(errors, Exception):
            raise errors
        kept = {name: before.parallelism[name] for name in errors}
        self.target = Target(parallelism={**target.parallelism, **kept}, sizes=target.sizes, placement=target.placement)
        self.requests.append(self.target.parallelism)
        return Reconciliation(
            requested=self.target.parallelism,
            observed=self.there(target.parallelism),
            changes={
                name: OperatorChange(before=before.parallelism.get(name, 0), requested=count, error=errors.get(name))
                for name, count in target.parallelism.items()
                if before.parallelism.get(name) != count
            },
            downtime_s=1.0,
        )

    def stop(self):
        self.stopped += 1
        return RecordCount(arrived=0, processed=0, waiting=0, lost=0, duplicated=0)


class Scripted:
    """Returns (or raises) one thing after the other, the last one for ever, and counts in its memory."""

    def __init__(self, *script):
        self.script = script

    def decide(self, observation, memory):
        step = memory.get("step", 0)
        action = self.script[min(step, len(self.script) - 1)]
        if isinstance(action, Exception):
            raise action
        if isinstance(action, int):
            action = {"a": action}
        if isinstance(action, dict):
            action = Recommendation(parallelism=action, reason=f"wants {action}")
        return action, {"step": step + 1}


def run(policy, engine=None, *, cycles=3, timeout_s=None, should_stop=lambda: False, initial=1, **parts):
    engine = engine or FakeEngine()
    journal = MemoryJournal()
    loop = Loop(engine=engine, decider=Decider(policy, timeout_s), journal=journal, **parts)
    target = Target(parallelism=dict.fromkeys(engine.graph.names, initial))
    loop.run(target, duration_s=10 * cycles, interval_s=10, should_stop=should_stop)
    return engine, journal.reports()


def kinds(reports):
    return [report.result.kind for report in reports]


class Lingering(FakeEngine):
    """Instances that leave are there for five seconds more."""

    def there(self, names):
        counts = super().there(names)
        return dict.fromkeys(counts, 3) if 20 <= self.time_s < 25 else counts
