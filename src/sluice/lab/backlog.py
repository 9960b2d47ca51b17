"""A backlog that never runs out: records for measuring what operators can do at most."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sluice.spark.topic.interface import RecordLog, open_log

if TYPE_CHECKING:
    import pyarrow as pa

PRODUCER = "backlog"
Make = Callable[[int], "Mapping[str, pa.Table]"]


class BacklogFeed:
    """Keeps so many records waiting at the sources that they never run out: block after block, as they are read.

    `readers` has the operator that reads each source; `most_waiting` is for all sources together.
    """

    def __init__(self, make: Make, readers: Mapping[str, str], most_waiting: int) -> None:
        self._make = make
        self._readers = readers
        self._most = most_waiting
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, topics: Mapping[str, str]) -> None:
        logs = {source: open_log(locator) for source, locator in topics.items()}
        self._thread = threading.Thread(target=self._run, args=(logs,), daemon=True)
        self._thread.start()

    def check(self) -> None:
        pass

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, logs: Mapping[str, RecordLog]) -> None:
        for number in itertools.count():
            for source, table in self._make(number).items():
                logs[source].append(table.cast(logs[source].schema), producer=PRODUCER, batch_id=number)
            while sum(logs[source].lag_records(reader) for source, reader in self._readers.items()) > self._most:
                if self._over.wait(0.05):
                    return
            if self._over.is_set():
                return


def repeated(tables: Mapping[str, pa.Table], times: Mapping[str, str], pieces: int) -> Make:
    """The tables in so many pieces, again and again, each time later in event time.

    `times` has the column of event time, where a table has one that matters; such a table is sorted by it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    spans = [pc.subtract(pc.max(tables[name][column]), pc.min(tables[name][column])) for name, column in times.items()]
    span = max((one.as_py() for one in spans), default=None)

    def make(number: int) -> Mapping[str, pa.Table]:
        turn, piece = divmod(number, pieces)
        made = {}
        for name, table in tables.items():
            first, last = (table.num_rows * part // pieces for part in (piece, piece + 1))
            part = table.slice(first, last - first)
            if span is not None and name in times:
                at = part.schema.get_field_index(times[name])
                later = pc.add(part.column(at), pa.scalar(span * turn, pa.duration("us")))
                part = part.set_column(at, times[name], later.cast(part.schema.field(at).type))
            made[name] = part
        return made

    return make
