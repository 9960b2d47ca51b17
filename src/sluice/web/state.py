"""A journal read so far: everything a page shows of it, kept up to date line by line.

Journals are anybody's text. A line that is no record is kept as the text it is, with what is wrong with it.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec

from sluice.errors import BadInputError
from sluice.journal.legacy import upgrade
from sluice.web.columns import Columns
from sluice.web.glance import (
    DECODER,
    CycleGlance,
    EndGlance,
    Glance,
    HeaderGlance,
    InterventionGlance,
    Metrics,
    OutcomeGlance,
    Window,
)
from sluice.web.lines import Lines, MemoryLines

LINES_SHOWN = 20
TEXT_SHOWN = 300
SAMPLES = 8
"""Of an operator's capacity at one parallelism: the newest."""
MOST_PARALLELISMS = 64
MOST_OPERATORS = 200
"""What a picture has room for, and a hostile journal could exceed."""


@dataclass
class Decision:
    """A cycle that acted, or would have: where its lines are."""

    row: int
    outcomes: list[int]


class JournalState:
    """Reads what is new on `refresh`. Called from one thread at a time."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.version = 0
        self._clear()

    def _clear(self) -> None:
        self.header: HeaderGlance | None = None
        self.header_handle = -1
        self.runs = 0
        self.columns = Columns()
        self.handles = array("q")
        self.decisions: list[Decision] = []
        self.interventions: deque[int] = deque(maxlen=100)
        self.last: CycleGlance | None = None
        self.end: EndGlance | None = None
        self.bad_lines = 0
        self.bad: list[dict[str, Any]] = []
        self.problems = 0
        self.slot_s = 0.0
        self.most_slots = 0
        self.fewest_slots = 0
        self.duration_s = 0.0
        self.late, self.known = 0, 0
        self.samples: dict[str, dict[int, deque[float]]] = {}
        self.kinds: dict[str, int] = {}
        self.unfulfilled = 0
        self._began_s = 0.0
        self._proposed: dict[str, int] | None = None
        self._by_cycle: dict[int, Decision] = {}
        self._upgraded: MemoryLines | None = None
        self._number = 0

    def refresh(self) -> None:
        """Read what was appended."""
        for handle, line in self._lines.fresh():
            if self._lines.began_anew and self._number and handle == 0:
                self._clear()
            self._number += 1
            self.version += 1
            self._take(handle, line)

    def read(self, handle: int) -> bytes:
        return (self._upgraded or self._lines).read(handle)

    def line_of(self, row: int) -> bytes:
        """The cycle of this row, as it was written."""
        return self.read(self.handles[row])

    def _take(self, handle: int, line: bytes) -> None:
        if self._upgraded is not None or (b'"run"' in line[:64] and b'"format":' not in line[:200]):
            self._take_old(line)
            return
        try:
            record = DECODER.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            self._reject(line, str(error))
            return
        self._add(record, handle)

    def _take_old(self, line: bytes) -> None:
        """A journal of format 1: its lines are kept as today's."""
        kept = self._upgraded = self._upgraded or MemoryLines()
        try:
            records = list(upgrade(msgspec.json.decode(line, type=dict), "the journal"))
        except (msgspec.MsgspecError, BadInputError, RecursionError) as error:
            self._reject(line, str(error))
            return
        for record in records:
            kept.append(record.to_json().encode())
        for handle, text in kept.fresh():
            self._add(DECODER.decode(text), handle)

    def _reject(self, line: bytes, problem: str) -> None:
        self.bad_lines += 1
        if len(self.bad) < LINES_SHOWN:
            text = line[:TEXT_SHOWN].decode("utf-8", "replace")
            self.bad.append({"line": self._number, "problem": problem[:TEXT_SHOWN], "text": text})

    def _add(self, record: Glance, handle: int) -> None:
        if isinstance(record, CycleGlance):
            self._add_cycle(record, handle)
        elif isinstance(record, OutcomeGlance):
            self._add_outcome(record, handle)
        elif isinstance(record, InterventionGlance):
            self.interventions.append(handle)
        elif isinstance(record, HeaderGlance):
            times = self.columns.last("time_s")
            self._began_s = times[-1] if times else 0.0
            self.header, self.header_handle, self.end = record, handle, None
            self.runs += 1
            self._by_cycle = {}
        else:
            self.end = record

    def _add_cycle(self, record: CycleGlance, handle: int) -> None:
        seen = record.observation
        if not seen.operators or not seen.interval_s > 0:
            self._number_rejected("a cycle without operators or without time", handle)
            return
        slots = self.slots(seen)
        wanted = self._counted(record.target.parallelism)
        latency_s = max(seen.latency_samples_s) if seen.latency_samples_s else None
        sources = [metrics for metrics in seen.operators.values() if metrics.arrival_rate is not None]
        arriving = sum(metrics.arrival_rate or 0.0 for metrics in sources) if sources else None
        read = [metrics.input_rate for metrics in sources if metrics.input_rate is not None]
        self.columns.append(
            self._began_s + record.time_s,
            arriving=arriving,
            read=sum(read) if read else None,
            slots=slots,
            target=wanted,
            latency_s=latency_s,
        )
        self.handles.append(handle)
        self._account(seen, slots, latency_s)
        self._sample(seen.operators)
        self.problems += record.problem is not None
        if record.action == "apply" or self._is_new_proposal(record):
            decision = Decision(len(self.handles) - 1, [])
            self.decisions.append(decision)
            self._by_cycle = {record.cycle: decision}
        if record.action != "apply":
            kind = {"cooldown": "cooldown", "dry_run": "would_scale"}.get(record.action, "held")
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        proposes = record.action == "dry_run" and record.proposed is not None
        self._proposed = record.proposed.parallelism if proposes and record.proposed else None
        self.last = record

    def _number_rejected(self, problem: str, handle: int) -> None:
        self._reject(self.read(handle), problem)

    def _is_new_proposal(self, record: CycleGlance) -> bool:
        return (
            record.action == "dry_run" and record.proposed is not None and record.proposed.parallelism != self._proposed
        )

    def _add_outcome(self, record: OutcomeGlance, handle: int) -> None:
        decision = self._by_cycle.get(record.cycle)
        if decision is None:
            return
        if not decision.outcomes:
            kind = "scaled" if record.status == "done" else record.status
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.unfulfilled += record.status == "unfulfilled"
        decision.outcomes.append(handle)

    def slots(self, seen: Window) -> int:
        return self._counted({name: metrics.parallelism for name, metrics in seen.operators.items()})

    def _counted(self, parallelism: dict[str, int]) -> int:
        """Instances; operators that share theirs are counted once."""
        if not parallelism:
            return 0
        shared = self.header is not None and self.header.is_shared
        return max(parallelism.values()) if shared else sum(parallelism.values())

    def _account(self, seen: Window, slots: int, latency_s: float | None) -> None:
        self.slot_s += slots * seen.interval_s
        self.duration_s += seen.interval_s
        self.most_slots = max(self.most_slots, slots)
        self.fewest_slots = min(self.fewest_slots or slots, slots)
        slo_s = self.header.slo_s if self.header else None
        if latency_s is not None and slo_s is not None:
            self.known += 1
            self.late += latency_s > slo_s

    def _sample(self, operators: dict[str, Metrics]) -> None:
        for name, metrics in operators.items():
            capacity = metrics.capacity
            if capacity is None or (name not in self.samples and len(self.samples) >= MOST_OPERATORS):
                continue
            kept = self.samples.setdefault(name, {})
            if metrics.parallelism in kept or len(kept) < MOST_PARALLELISMS:
                kept.setdefault(metrics.parallelism, deque(maxlen=SAMPLES)).append(capacity)
