"""From a plan by epochs to what is requested now, where instances take their time to come or cannot be had. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.model import InstanceMix, NodeTypeMetrics

OVERDUE = 3.0
"""Times the usual start-up time: then what was requested does not count as coming any more."""
LEAST_PATIENCE_S = 60.0

NodeTypes = Mapping[str, NodeTypeMetrics]


def unavailable(types: NodeTypes) -> frozenset[str]:
    """Sizes that cannot be started now."""
    return frozenset(name for name, one in types.items() if not one.available)


def lacking(requested: InstanceMix, running: InstanceMix) -> InstanceMix:
    """What was requested and is not there."""
    return {size: count - running.get(size, 0) for size, count in requested.items() if count > running.get(size, 0)}


def most_to_be_had(running: InstanceMix, types: NodeTypes) -> InstanceMix:
    """Of sizes that cannot be started now: those that run, and those that are on their way."""
    return {size: running.get(size, 0) + types[size].coming for size in unavailable(types)}


def expected_mix(
    requested: InstanceMix | None, running: InstanceMix, types: NodeTypes, waited_s: float | None
) -> InstanceMix:
    """What there is to plan with: the mix requested last while it can still come, else the one that runs.

    Of a size that cannot be started now, what is on its way comes all the same.
    """
    if not requested or waited_s is None:
        return running
    missing = lacking(requested, running)
    if not missing or any(size not in types for size in missing):
        return running
    if refused := [size for size in missing if not types[size].available]:
        coming = missing | {size: min(missing[size], types[size].coming) for size in refused}
        requested = running | {size: running.get(size, 0) + count for size, count in coming.items() if count}
    slowest_s = max(types[size].start_s for size in missing)
    return requested if 0 <= waited_s <= max(LEAST_PATIENCE_S, OVERDUE * slowest_s) else running


def ahead_of_time(mixes: Sequence[InstanceMix], begins_s: Sequence[float], start_s: Mapping[str, float]) -> InstanceMix:
    """Of every size the most that a later epoch needs which begins before an instance of it, requested now, comes.

    `begins_s` says in how many seconds each epoch begins; the first has begun.
    """
    wanted: InstanceMix = {}
    for mix, begins in zip(mixes[1:], begins_s[1:], strict=True):
        for size, count in mix.items():
            if begins <= start_s.get(size, 0.0):
                wanted[size] = max(wanted.get(size, 0), count)
    return wanted


def with_those_ahead(
    mixes: Mapping[str, InstanceMix],
    planned: Mapping[str, Sequence[InstanceMix]],
    planned_epoch: int,
    time_s: float,
    epoch_s: float,
    start_s: Mapping[str, float],
) -> dict[str, InstanceMix]:
    """The mixes of now, and what a plan that begins with `planned_epoch` needs so soon that it is requested now."""
    passed = int(time_s / epoch_s) - planned_epoch
    early = dict(mixes)
    for name, by_epoch in planned.items():
        left = by_epoch[passed:] if passed >= 0 else []
        if name in mixes and len(left) > 1:
            begins_s = [(planned_epoch + passed + step) * epoch_s - time_s for step in range(len(left))]
            early[name] = most_of_both(mixes[name], ahead_of_time(left, begins_s, start_s))
    return early


def most_of_both(one: InstanceMix, other: InstanceMix) -> InstanceMix:
    return {size: max(one.get(size, 0), other.get(size, 0)) for size in {**one, **other}}
