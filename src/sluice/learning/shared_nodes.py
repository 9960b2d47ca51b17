"""Operators that share nodes: their loads and rates as those of one job, so that one search chooses all nodes. Pure.

Every node runs every operator, each for its share of the time. An epoch needs `sum_o load_o / rate_o,s` nodes of a size
`s`; how many of one size stand for one of another follows from that, and the job is planned as exactly as an operator.
Where operators prefer different sizes in different epochs, the worst epoch counts for a size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.learning.qcesa import SizeOption

JOB = "job"


def joined(
    loads: Mapping[str, Sequence[float]], options: Mapping[str, Sequence[SizeOption]]
) -> tuple[list[float], list[SizeOption]]:
    """What the job needs in every epoch, in nodes of the first size, and what each size is worth of those."""
    rates = {name: {option.name: option.performance for option in offered} for name, offered in options.items()}
    common = [option for option in next(iter(options.values())) if all(option.name in one for one in rates.values())]
    epochs = range(len(next(iter(loads.values()))))
    needed = {
        option.name: [sum(loads[name][epoch] / rates[name][option.name] for name in loads) for epoch in epochs]
        for option in common
    }
    first = needed[common[0].name]
    worth = {
        name: min((one / other for one, other in zip(first, found, strict=True) if other > 0), default=1.0)
        for name, found in needed.items()
    }
    usable = [
        SizeOption(name=option.name, performance=worth[option.name], price=option.price, most=option.most)
        for option in common
        if worth[option.name] > 0
    ]
    return first, usable
