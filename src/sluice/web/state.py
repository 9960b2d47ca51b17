"""A journal read so far: everything a page shows of it, kept up to date line by line.

Journals are anybody's text. A line that is no record is kept as the text it is, with what is wrong with it.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from sluice.errors import BadInputError
from sluice.journal.legacy import upgrade
from sluice.web.columns import Columns
from sluice.web.glance import (
    DECODER,
    LAST,
    CycleGlance,
    CycleRow,
    EndGlance,
    Glance,
    GlanceWindow,
    HeaderGlance,
    InterventionGlance,
    OutcomeGlance,
    Rates,
)
from sluice.web.lines import JournalLines, MemoryLines

LINES_SHOWN = 20
TEXT_SHOWN = 300
SAMPLES = 8
"""Of an operator's capacity at one parallelism: the newest."""
MOST_PARALLELISMS = 64
LEARNED = b'"curves":{"'
PART = 200
"""Lines between two calls of `on_part`: some milliseconds."""
MOST_OPERATORS = 200
"""What a picture has room for, and a hostile journal could exceed."""


_EDITIONS = count(time.time_ns() // 1_000_000)
"""Those of a page that was started again are others."""


@dataclass
class Decision:
    """A cycle that acted, or would have: where its lines are."""

    row: int
    outcomes: list[int]


class JournalState:
    """Reads what is new on `refresh`. Called from one thread at a time."""

    def __init__(self, lines: JournalLines) -> None:
        self._lines = lines
        self.version = 0
        self._clear()

    def _clear(self) -> None:
        self.edition = next(_EDITIONS)
        """Another one whenever rows that a page has are no longer those of this journal."""
        self.header: HeaderGlance | None = None
        self.header_handle = -1
        self.columns = Columns()
        self.handles = array("q")
        self.decisions: list[Decision] = []
        self.interventions: deque[tuple[int, float]] = deque(maxlen=100)
        """Handles, and when their run began."""
        self._last: tuple[int, CycleGlance | None] | None = None
        self._shared = False
        self.learned_handle = -1
        """The newest cycle with curves that a policy has learned; it says none while it is not asked."""
        self.end: EndGlance | None = None
        self.bad_lines = 0
        self.bad: list[dict[str, Any]] = []
        self.problems = 0
        self.slot_s = 0.0
        self.most_slots = 0
        self.duration_s = 0.0
        self.late, self.known = 0, 0
        self.samples: dict[str, dict[int, deque[float]]] = {}
        self.kinds: dict[str, int] = {}
        self.unfulfilled = 0
        self._began_s = 0.0
        self._proposed: dict[str, int] | None = None
        self._by_cycle: dict[int, Decision] = {}
        self._upgraded: MemoryLines | None = None
        self._is_old = False
        self._number = 0

    def refresh(self, on_part: Callable[[], None] | None = None) -> None:
        """Read what was appended; `on_part` is called now and then meanwhile."""
        for handle, line in self._lines.fresh():
            if on_part is not None and self._number % PART == 0:
                on_part()
            if self._lines.began_anew and self._number and handle == 0:
                self._clear()
            self._number += 1
            self.version += 1
            self._take(handle, line)

    @property
    def position(self) -> int:
        """How far the lines were read."""
        return self._lines.position

    def read(self, handle: int) -> bytes:
        return (self._upgraded or self._lines).read(handle)

    def line_of(self, row: int) -> bytes:
        """The cycle of this row, as it was written."""
        return self.read(self.handles[row])

    def _take(self, handle: int, line: bytes) -> None:
        if self._is_old or (b'"run"' in line[:64] and b'"format":' not in line[:200]):
            self._take_old(line)
            return
        try:
            record = DECODER.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            self._reject(line, str(error))
            return
        if LEARNED in line:
            self.learned_handle = handle
        self._add(record, handle if self._upgraded is None else self._upgraded.append(line))

    def _take_old(self, line: bytes) -> None:
        """A journal of format 1: its lines are kept as today's, and what a newer version wrote after them as it is."""
        if b'"format":' in line[:200]:
            self._is_old = False
            self._take(-1, line)
            return
        try:
            records = list(upgrade(msgspec.json.decode(line, type=dict), "the journal"))
        except (msgspec.MsgspecError, BadInputError, RecursionError) as error:
            self._reject(line, str(error))
            return
        self._is_old = True
        kept = self._upgraded = self._upgraded or MemoryLines()
        for record in records:
            text = record.to_json().encode()
            self._add(DECODER.decode(text), kept.append(text))

    def _reject(self, line: bytes, problem: str) -> None:
        self.bad_lines += 1
        if len(self.bad) < LINES_SHOWN:
            text = line[:TEXT_SHOWN].decode("utf-8", "replace")
            self.bad.append({"line": self._number, "problem": problem[:TEXT_SHOWN], "text": text})

    def _add(self, record: Glance, handle: int) -> None:
        if isinstance(record, CycleRow):
            self._add_cycle(record, handle)
        elif isinstance(record, OutcomeGlance):
            self._add_outcome(record, handle)
        elif isinstance(record, InterventionGlance):
            self.interventions.append((handle, self._began_s))
        elif isinstance(record, HeaderGlance):
            times = self.columns.last("time_s")
            self._began_s = times[-1] if times else 0.0
            self.header, self.header_handle, self.end = record, handle, None
            self._shared = record.is_shared
            self._by_cycle = {}
        else:
            self.end = record

    def _add_cycle(self, record: CycleRow, handle: int) -> None:
        seen = record.observation
        if not seen.operators or not seen.interval_s > 0:
            self._number_rejected("a cycle without operators or without time", handle)
            return
        slots = largest = 0
        arriving: float | None = None
        read: float | None = None
        for name, rates in seen.operators.items():
            count = rates.parallelism
            slots += count
            largest = count if count > largest else largest
            if rates.arrival_rate is not None:
                arriving = (arriving or 0.0) + rates.arrival_rate
                if rates.input_rate is not None:
                    read = (read or 0.0) + rates.input_rate
            if rates.input_rate and (rates.true_input_rate or rates.busy):
                self._sample(name, rates)
        slots = largest if self._shared else slots
        latency_s = max(seen.latency_samples_s) if seen.latency_samples_s else None
        wanted = self._counted(record.target.parallelism)
        self.columns.append(self._began_s + record.time_s, arriving, read, slots, wanted, latency_s)
        self.handles.append(handle)
        self._account(seen.interval_s, slots, latency_s)
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

    @property
    def last(self) -> CycleGlance | None:
        """The newest cycle, with all that a page shows of it; null if there is none that can be shown."""
        if self._last is None or self._last[0] != len(self.handles):
            self._last = (len(self.handles), self._decoded_last())
        return self._last[1]

    def _decoded_last(self) -> CycleGlance | None:
        if not len(self.handles):
            return None
        try:
            return LAST.decode(self.line_of(len(self.handles) - 1))
        except (msgspec.MsgspecError, RecursionError):
            return None

    def _number_rejected(self, problem: str, handle: int) -> None:
        self._reject(self.read(handle), problem)

    def _is_new_proposal(self, record: CycleRow) -> bool:
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

    def slots(self, seen: GlanceWindow) -> int:
        return self._counted({name: metrics.parallelism for name, metrics in seen.operators.items()})

    def _counted(self, parallelism: dict[str, int]) -> int:
        """Instances; operators that share theirs are counted once."""
        if not parallelism:
            return 0
        return max(parallelism.values()) if self._shared else sum(parallelism.values())

    def _account(self, interval_s: float, slots: int, latency_s: float | None) -> None:
        self.slot_s += slots * interval_s
        self.duration_s += interval_s
        self.most_slots = max(self.most_slots, slots)
        slo_s = self.header.slo_s if self.header else None
        if latency_s is not None and slo_s is not None:
            self.known += 1
            self.late += latency_s > slo_s

    def _sample(self, name: str, rates: Rates) -> None:
        capacity = rates.true_input_rate or (rates.input_rate or 0.0) / (rates.busy or 1.0)
        kept = self.samples.get(name)
        if kept is None:
            if len(self.samples) >= MOST_OPERATORS:
                return
            kept = self.samples[name] = {}
        samples = kept.get(rates.parallelism)
        if samples is None:
            if len(kept) >= MOST_PARALLELISMS:
                return
            samples = kept[rates.parallelism] = deque(maxlen=SAMPLES)
        samples.append(capacity)
