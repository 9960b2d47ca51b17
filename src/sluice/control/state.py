"""What the loop knows between cycles: the target in force, what was requested for it, and what is there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sluice.model import Graph, InstanceMix, Recommendation, Reconciliation, Target

LONGEST_RETRY_S = 600.0


@dataclass(frozen=True)
class Request:
    """An action under way: the instances observed are not yet those requested."""

    since_s: float
    grows: bool = True
    """Instances are to come; else only to leave."""


@dataclass(frozen=True)
class Shortage:
    """A request was not fulfilled: until `until_s` the operator is not given more than it has.

    The time doubles with every request that fails again, so a full cluster is asked now and then, not all the time.
    When it is over, `requested` is requested again, whether the policy repeats it or holds.
    """

    requested: int
    available: int
    until_s: float
    retry_s: float


@dataclass(frozen=True)
class LoopState:
    """Target, requested and observed, with the action that is under way."""

    target: Target
    requested: dict[str, int] = field(default_factory=dict)
    observed: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, InstanceMix] = field(default_factory=dict)
    """Observed, of an engine that tells sizes apart."""
    last_action_s: float | None = None
    downtime_s: float | None = None
    """How long the last action stopped the job."""
    start_s: float | None = None
    """How long the last requested instances took to come."""
    request: Request | None = None
    shortages: dict[str, Shortage] = field(default_factory=dict)

    def aligned(self, graph: Graph) -> LoopState:
        """With a target for just the operators there are now; those that share instances have one number."""
        if not graph.shared or self.target.parallelism.keys() == set(graph.names):
            return self
        count = max(self.target.parallelism.values())
        short = max(self.shortages.values(), key=lambda one: one.until_s, default=None)
        return replace(
            self,
            target=Target(parallelism=dict.fromkeys(graph.names, count)),
            shortages=dict.fromkeys(graph.names, short) if short else {},
        )

    def recommended(self, recommendation: Recommendation) -> LoopState:
        """The latest recommendation is what is requested when a shortage is over."""
        if not self.shortages:
            return self
        shortages = {
            name: replace(one, requested=recommendation.parallelism.get(name, one.requested))
            for name, one in self.shortages.items()
        }
        return replace(self, shortages=shortages)

    def reconciled(self, reconciliation: Reconciliation) -> LoopState:
        """What an engine could not do leaves the target: the policy may recommend it again."""
        known = (self.requested, self.observed, self.sizes)
        if not reconciliation.changes and known == (
            reconciliation.requested,
            reconciliation.observed,
            reconciliation.sizes,
        ):
            return self
        failed = {
            name: reconciliation.requested[name]
            for name, change in reconciliation.changes.items()
            if change.error and name in reconciliation.requested
        }
        target = self.target
        if failed:
            target = Target(
                parallelism={**target.parallelism, **failed},
                sizes={name: mix for name, mix in target.sizes.items() if name not in failed},
                shared_nodes=target.shared_nodes,
                placement=None if target.placement and not _places(target, failed) else target.placement,
            )
        return replace(
            self,
            target=target,
            requested=dict(reconciliation.requested),
            observed=dict(reconciliation.observed),
            sizes=dict(reconciliation.sizes),
        )

    @property
    def missing(self) -> dict[str, tuple[int, int]]:
        """Operators with another number of instances than requested: requested and observed."""
        return {
            name: (count, self.observed[name])
            for name, count in self.requested.items()
            if name in self.observed and self.observed[name] != count
        }

    @property
    def is_short(self) -> bool:
        """Whether instances are to come; else those that are not as requested are to leave."""
        return any(observed < requested for requested, observed in self.missing.values())

    def short_of(self, time_s: float, patience_s: float) -> LoopState:
        """Give up on instances that did not come: the target is what is there, and growth waits for its time.

        Where sizes are told apart one of them is short, not the operator: the engine says which, and nothing waits.
        """
        shortages = dict(self.shortages)
        counts = dict(self.target.parallelism)
        there = {name: mix for name, mix in self.sizes.items() if name in self.missing and any(mix.values())}
        for name, (requested, observed) in self.missing.items():
            if name in there:
                counts[name] = sum(there[name].values())
            elif observed < requested and name in counts:
                before = shortages.get(name)
                retry_s = min(LONGEST_RETRY_S, 2 * before.retry_s if before else patience_s)
                shortages[name] = Shortage(requested, max(1, observed), time_s + retry_s, retry_s)
                counts[name] = max(1, observed)
        mixes = {**self.target.sizes, **there}
        sizes = {name: mix for name, mix in mixes.items() if sum(mix.values()) == counts[name]}
        target = self.target
        if counts != target.parallelism or sizes != target.sizes:
            target = Target(parallelism=counts, sizes=sizes, shared_nodes=target.shared_nodes)
        return replace(self, target=target, request=None, shortages=shortages)

    def fulfilled(self) -> LoopState:
        """All that was requested is there: nothing is short any more."""
        return replace(self, request=None, shortages={})


def _places(target: Target, failed: dict[str, int]) -> bool:
    """Whether the target's placement still has as many tasks as the operators that failed to change."""
    placed = target.placement.parallelism if target.placement else {}
    return all(placed.get(name) == count for name, count in failed.items())
