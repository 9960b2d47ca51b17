"""Whether the job keeps up, in one word and one sentence: what a page says first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sluice.web.state import JournalState
from sluice.web.text import clipped

Word = Literal[
    "waiting",
    "keeps up",
    "catches up",
    "falls behind",
    "late",
    "idle",
    "unknown",
    "kept up",
    "fell behind",
    "was late",
    "failed",
]
WINDOWS = 3
"""A single window may be a restart, or a batch longer than the others."""
KEEPS_UP = 0.97
"""The share of what arrives that must be read: less than this grows a backlog that matters."""
LATE_SHARE = 0.05
"""Of its time a past run may have been above the objective and still be said to have kept up."""


@dataclass(frozen=True)
class Health:
    """`good` is null where nothing can be said."""

    word: Word
    good: bool | None
    sentence: str


def verdict(state: JournalState) -> Health:
    """By the last windows: reads against arrivals, and latency against the objective."""
    if state.last is None:
        return Health("waiting", None, "No window has been observed yet.")
    arriving, read = (_mean(state.columns.last(name, WINDOWS)) for name in ("arriving", "read"))
    latency_s = state.columns.last("latency_s", WINDOWS)
    slo_s = state.header.slo_s if state.header else None
    late = slo_s is not None and bool(latency_s) and latency_s[-1] > slo_s
    figures = _figures(arriving, read, latency_s[-1] if latency_s else None, slo_s)
    if arriving == 0 and not read:
        return Health("idle", True, f"Nothing arrives. {figures}".strip())
    if arriving is not None and read is not None:
        if read < KEEPS_UP * arriving:
            return Health("falls behind", False, f"Records arrive faster than they are read. {figures}")
        if late and read > arriving / KEEPS_UP:
            return Health("catches up", False, f"Works off a backlog. {figures}")
    if late:
        return Health("late", False, f"Records wait longer than the objective. {figures}")
    if arriving is None or read is None:
        known = bool(latency_s) and slo_s is not None
        return Health("keeps up" if known else "unknown", True if known else None, figures or "No rate is known.")
    return Health("keeps up", True, figures)


def past_verdict(state: JournalState) -> Health:
    """Of a run that is over: by all of it, not by how it ended."""
    if state.end is not None and state.end.error is not None:
        return Health("failed", False, f"The run ended early: {clipped(state.end.error)}")
    ending = verdict(state)
    slo_s = state.header.slo_s if state.header else None
    late = state.columns.share_above("latency_s", slo_s) if slo_s is not None else None
    read = state.columns.total("read")
    arrived = state.columns.total("arriving")
    at_the_end = f"At the end: {ending.sentence[:1].lower()}{ending.sentence[1:]}"
    if late is not None and late > LATE_SHARE:
        return Health("was late", False, f"Latency was above {slo_s:g} s for {late:.0%} of the time. {at_the_end}")
    if read is not None and arrived and read < KEEPS_UP * arrived:
        return Health("fell behind", False, f"Read {read / arrived:.0%} of the records that arrived. {at_the_end}")
    if late is None and (read is None or not arrived):
        return Health("unknown", None, ending.sentence)
    within = "" if late is None else f"Latency was within {slo_s:g} s for {1 - late:.0%} of the time. "
    return Health("kept up", True, f"{within}{at_the_end}")


def _figures(arriving: float | None, read: float | None, latency_s: float | None, slo_s: float | None) -> str:
    parts = []
    if arriving is not None and read is not None:
        parts.append(f"{arriving:,.0f} records/s arrive, {read:,.0f} are read")
    if latency_s is not None:
        objective = "" if slo_s is None else f" (objective {slo_s:g} s)"
        parts.append(f"latency {latency_s:,.1f} s{objective}")
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
