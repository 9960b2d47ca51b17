"""What policies ended the levels of a load with, beside the optimum: rows of `benchmarks/learning_on_spark.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sluice.errors import BadInputError
from sluice.lab.bench.statistics import Estimate, estimate
from sluice.lab.report.figures import figure, markdown

Row = Mapping[str, Any]
Level = Mapping[str, Any]

PAGE = "learning-on-spark"
TITLE = "Learning policies on Spark"
HOW_TO_READ = (
    "WordCount with paced slots whose splitter and counter bend by Amdahl's law (six slots do the work of 4.6), topics "
    "bounded, three levels of load in an order by the seed, and once more in that order. *optimum*: the share of "
    "levels that ended with the fewest slots that carry them, in every operator; *within one*: with at most one slot "
    "more or less in every operator; *carries*: with enough. *slots*: those a level ended with over the optimal ones. "
    "Mean over seeds and half the 95 % confidence interval."
)


def read_learned(path: Path) -> list[Row]:
    try:
        rows = list(json.loads(path.read_text()).values())
        if rows and all(row["levels"] and row["policy"] for row in rows):
            return rows
    except OSError as error:
        raise BadInputError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise BadInputError(f"{str(path)!r} is not what benchmarks.learning_on_spark keeps: runs by name, each with levels")


def learned_page(rows: Sequence[Row]) -> list[str]:
    """What stands on the page, its heading first."""
    whole, visits, single = learned_tables(rows)
    return [
        f"# {TITLE}",
        f"{_measured(rows)} {HOW_TO_READ}",
        whole,
        "## First and again",
        "The same by whether a level was new to the policy or had been there before.",
        visits,
        "## Every level",
        "Slots of source, splitter and counter.",
        single,
    ]


def learned_tables(rows: Sequence[Row]) -> tuple[str, str, str]:
    """Per policy, per policy and visit, and every level."""
    header = ["runs", *MEASURES, "late"]
    by_policy = {
        name: [row for row in rows if row["policy"] == name] for name in dict.fromkeys(r["policy"] for r in rows)
    }
    whole = markdown(
        ["policy", *header],
        (
            [name, str(len(own)), *_figures(own), figure(estimate(row["slo_violation_ratio"] for row in own))]
            for name, own in by_policy.items()
        ),
    )
    visits = markdown(
        ["policy", *MEASURES],
        (
            [f"{name}, {'again' if again else 'first'}", *_figures(own, again)]
            for name, own in by_policy.items()
            for again in (False, True)
        ),
    )
    single = markdown(
        ["run", "load", "optimum", "ended with", "actions", "last after (s)"],
        (
            [
                f"{row['policy']}, seed {row['seed']}, level {number}",
                f"{level['load']:.2g}",
                _slots(level["optimum"]),
                _slots(level["ended"]),
                str(level["actions"]),
                f"{level['settled_s']:g}",
            ]
            for own in by_policy.values()
            for row in sorted(own, key=lambda row: row["seed"])
            for number, level in enumerate(row["levels"], start=1)
        ),
    )
    return whole, visits, single


def _exact(level: Level) -> float:
    return float(level["ended"] == level["optimum"])


def _near(level: Level) -> float:
    return float(all(abs(level["ended"][name] - count) <= 1 for name, count in level["optimum"].items()))


def _share_of_slots(level: Level) -> float:
    return float(sum(level["ended"].values()) / sum(level["optimum"].values()))


MEASURES: Mapping[str, Callable[[Level], float]] = {
    "optimum": _exact,
    "within one": _near,
    "carries": lambda level: float(level["carries"]),
    "slots": _share_of_slots,
    "actions per level": lambda level: float(level["actions"]),
    "last after (s)": lambda level: float(level["settled_s"]),
}


def _figures(rows: Sequence[Row], again: bool | None = None) -> list[str]:
    """Means of each run's levels, over the runs."""
    return [
        figure(
            estimate(
                _mean(measure(level) for level in row["levels"] if again in (None, level["again"])) for row in rows
            )
        )
        for measure in MEASURES.values()
    ]


def _mean(values: Iterable[float]) -> float | None:
    found: Estimate = estimate(values)
    return found.mean


def _slots(counts: Mapping[str, int]) -> str:
    return " + ".join(str(count) for count in counts.values())


def _measured(rows: Sequence[Row]) -> str:
    machine = rows[0]["environment"]
    dates = sorted({row["environment"]["date"] for row in rows})
    together = sorted({row["side_by_side"] for row in rows})
    return (
        f"{len(rows)} runs of {rows[0]['duration_s']:g} s on {' and '.join(dates)}, {machine['processor']}, "
        f"{machine['cores']} cores, sluice {machine['sluice']}, {' or '.join(map(str, together))} at a time."
    )
