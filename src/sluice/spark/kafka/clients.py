"""Clients of Kafka and how they live: no thread of the library ever runs Python.

The library has threads of its own. Where one of them calls into Python, the garbage collector may run in it and destroy
a client there, or the interpreter may be ending: either ends the process. Its producers and consumers call back only
inside a call of ours, in the calling thread, and only these are used here. Its AdminClient answers from a thread of the
library, so it is used by a process of its own, which can end as it likes (`new_topic`).

Whoever opens a client closes it. One that was opened before a fork is the parent's, and the child never touches it.
When the program ends nothing is closed: a thread may still be inside a call.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluice.errors import BadInputError

if TYPE_CHECKING:
    from sluice.spark.kafka.connection import Broker

CLOSE_TIMEOUT_S = 10.0
READING = {
    "group_id": "sluice.reader",
    "enable_auto_commit": False,
    "enable_auto_offset_store": False,
    "isolation_level": "read_committed",
    "enable_partition_eof": True,
    "fetch_wait_max_ms": 10,
}
"""Of consumers that are told what to read: no group to join, what is not committed is skipped, ends are reported."""


def library() -> Any:
    """The module of Kafka's clients; bad input where it is not installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise BadInputError("Kafka topics need confluent-kafka; install sluice[kafka]") from error
    return confluent_kafka


class OpenClients:
    """Those of this process. Tasks, sources and drivers each have their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, Any] = {}
        self._idle: dict[Any, list[Any]] = {}
        self._of_parents: list[Any] = []

    def __len__(self) -> int:
        return len(self._open)

    def add(self, client: Any) -> Any:
        with self._lock:
            self._open[id(client)] = client
        return client

    def close(self, client: Any) -> None:
        """A second call does nothing. What a producer has not sent is dropped."""
        with self._lock:
            if self._open.pop(id(client), None) is None:
                return
        _end(client)

    @contextmanager
    def lent_consumer(self, broker: Broker, **settings: Any) -> Iterator[Any]:
        """For one reader at a time, then for the next: making one costs more than reading a little with it."""
        key = (broker.address, tuple(sorted(settings.items())))
        with self._lock:
            idle = self._idle.get(key)
            consumer = idle.pop() if idle else None
        if consumer is None:
            consumer = self.add(library().Consumer(broker.client(**{**READING, **settings})))
        try:
            yield consumer
        except Exception:
            self.close(consumer)
            raise
        finally:
            if id(consumer) in self._open:
                consumer.unassign()
                with self._lock:
                    self._idle.setdefault(key, []).append(consumer)

    def forget(self) -> None:
        """In a child of a fork: the threads of these clients are not here, so they cannot even be closed."""
        self._of_parents += self._open.values()
        self._lock = threading.Lock()
        self._open, self._idle = {}, {}


def _end(client: Any) -> None:
    if hasattr(client, "purge"):
        # closing waits for whatever is still to be sent
        client.purge()
        client.flush(CLOSE_TIMEOUT_S)
    with warnings.catch_warnings():
        # about a transaction of a producer that was replaced: it is over already
        warnings.simplefilter("ignore")
        client.close()


clients = OpenClients()
os.register_at_fork(after_in_child=clients.forget)
