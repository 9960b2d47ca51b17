"""Whether the job keeps up, in one word and one sentence: what a page says first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sluice.web.state import JournalState

Word = Literal["waiting", "keeps up", "catches up", "falls behind", "late", "idle", "unknown"]
WINDOWS = 3
"""A single window may be a restart, or a batch longer than the others."""
KEEPS_UP = 0.97
"""The share of what arrives that must be read: less than this grows a backlog that matters."""


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


def _figures(arriving: float | None, read: float | None, latency_s: float | None, slo_s: float | None) -> str:
    parts = []
    if arriving is not None and read is not None:
        parts.append(f"reads {read:,.0f} of {arriving:,.0f} records/s arriving")
    if latency_s is not None:
        objective = "" if slo_s is None else f" (objective {slo_s:g} s)"
        parts.append(f"latency {latency_s:,.1f} s{objective}")
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
