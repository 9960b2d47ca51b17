"""What the JVM asks about topics, answered in the driver's own process: no source has a process of its own.

Every stream of the JVM (`java/TopicStream`) has a name and, from `open` to `close`, a `TopicReader` here; what tasks
have written (`java/TopicWrite`) is committed here. Requests and replies are JSON; they come through Py4J's callbacks,
in a thread per stream, as those of `foreachBatch` do.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sluice.spark.topic.log import Topic
from sluice.spark.topic.segments import Segment
from sluice.spark.topic.source import TopicReader

Request = Mapping[str, Any]

before_batch: dict[Path, Callable[[], None]] = {}
"""By control file: what is to be done before the next batch is planned, in time to change the file."""


class TopicPlanner:
    """A `java.util.function.Function`. What a request raises goes back as its traceback, for the query to fail with."""

    def __init__(self) -> None:
        self._readers: dict[str, TopicReader] = {}
        self._topics: dict[str, Topic] = {}
        """Those that are written."""
        self._calls: dict[str, Callable[[TopicReader, Request], Any]] = {
            "first": lambda reader, _: json.dumps(reader.first_offset()),
            "next": _next,
            "newest": lambda reader, _: json.dumps(reader.newest_offset()),
            "stop_at_newest": lambda reader, _: reader.stop_at_newest(),
            "plan": lambda reader, asked: reader.parts(json.loads(asked["start"]), json.loads(asked["end"])),
        }

    def apply(self, request: str) -> str:
        try:
            return json.dumps({"answer": self._answer(json.loads(request))})
        except Exception:
            return json.dumps({"error": traceback.format_exc()})

    def _answer(self, asked: Request) -> Any:
        call = asked["call"]
        if call == "commit":
            return self._commit(asked)
        stream = asked["stream"]
        if call == "open":
            self._readers[stream] = TopicReader(
                Path(asked["path"]), asked["name"], asked["consumer"], Path(asked["control"])
            )
            return None
        if call == "close":
            self._readers.pop(stream, None)
            return None
        return self._calls[call](self._readers[stream], asked)

    def _commit(self, asked: Request) -> None:
        path = asked["path"]
        if path not in self._topics:
            self._topics[path] = Topic.open(Path(path))
        self._topics[path].commit(
            tuple(Segment(**segment) for segment in asked["segments"]),
            folder=asked["folder"],
            producer=asked["producer"],
            batch_id=asked["batch_id"],
        )

    Java = SimpleNamespace(implements=("java.util.function.Function",))
    """How Py4J learns what to call it."""


def _next(reader: TopicReader, asked: Request) -> str:
    """Without a new batch the very text that was asked about: Spark compares offsets by their text."""
    before_batch.get(reader.control_path, _nothing)()
    start = json.loads(asked["start"])
    end = reader.end_after(start, limited=asked["limited"])
    return asked["start"] if end == start else json.dumps(end)


def _nothing() -> None:
    pass
