"""Whatever is appended, replayed, read and trimmed, and wherever a process dies: every record once, offsets dense."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sluice.spark.topic import Topic

SCHEMA = pa.schema([("id", pa.int64())])
PRODUCERS = ("left", "right/á")
CONSUMERS = ("slow", "fast")


class ProcessDiedError(BaseException):
    """Not an Exception: no handler of the code under test may survive it."""


@contextmanager
def dies_after(steps: int | None) -> Iterator[None]:
    """Let the process die in file system operation number `steps`, half done where half can be done."""
    left = [10**9 if steps is None else steps]

    def deadly(real, half):
        def operation(*args, **options):
            if left[0] == 0:
                half(*args)
                raise ProcessDiedError
            left[0] -= 1
            return real(*args, **options)

        return operation

    def nothing(*_args) -> None:
        return None

    def half_of_a_file(path: Path, content: bytes) -> None:
        with open(path, "wb") as file:
            file.write(content[: len(content) // 2])

    def half_of_a_tree(path: Path, *_args) -> None:
        for file in list(Path(path).iterdir())[:1]:
            os.unlink(file)

    with (
        mock.patch.object(os, "replace", deadly(os.replace, nothing)),
        mock.patch.object(Path, "write_bytes", deadly(Path.write_bytes, half_of_a_file)),
        mock.patch.object(Path, "unlink", deadly(Path.unlink, nothing)),
        mock.patch.object(Path, "mkdir", deadly(Path.mkdir, nothing)),
        mock.patch.object(shutil, "rmtree", deadly(shutil.rmtree, half_of_a_tree)),
    ):
        yield


DIES = st.none() | st.integers(0, 12)


class TopicMachine(RuleBasedStateMachine):
    """`expected[offset]` is the record at that offset; a producer repeats the batch it died in, as Spark does."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.topic = Topic.create(self.folder / "topic", SCHEMA)
        self.expected: list[int] = []
        self.next_record = 0
        self.batch_ids = dict.fromkeys(PRODUCERS, 0)
        self.unfinished: dict[str, list[int]] = {}
        self.offsets = {name: self.topic.register(name) for name in CONSUMERS}

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def survives(self, steps: int | None, action) -> bool:
        try:
            with dies_after(steps):
                action()
            return True
        except ProcessDiedError:
            self.topic = Topic.open(self.topic.path)
            return False

    @rule(producer=st.sampled_from(PRODUCERS), count=st.integers(0, 4), steps=DIES)
    def append(self, producer: str, count: int, steps: int | None) -> None:
        batch = self.unfinished.pop(producer, None)
        if batch is None:
            batch = list(range(self.next_record, self.next_record + count))
            self.next_record += count
        batch_id = self.batch_ids[producer]
        table = pa.table({"id": batch}, schema=SCHEMA)
        self.survives(steps, lambda: self.topic.append(table, producer=producer, batch_id=batch_id))
        if self.topic.last_batch_id(producer) == batch_id:
            self.expected += batch
            self.batch_ids[producer] += 1
        else:
            self.unfinished[producer] = batch

    @precondition(lambda self: any(self.batch_ids.values()))
    @rule(producer=st.sampled_from(PRODUCERS), back=st.integers(1, 3))
    def replay(self, producer: str, back: int) -> None:
        batch_id = self.batch_ids[producer] - back
        if batch_id >= 0:
            again = pa.table({"id": [-1]}, schema=SCHEMA)
            assert self.topic.append(again, producer=producer, batch_id=batch_id) is None

    @rule(consumer=st.sampled_from(CONSUMERS), share=st.floats(0, 1), steps=DIES)
    def acknowledge(self, consumer: str, share: float, steps: int | None) -> None:
        offset = self.offsets[consumer] + int(share * (len(self.expected) - self.offsets[consumer]))
        if self.survives(steps, lambda: self.topic.acknowledge(consumer, offset)):
            self.offsets[consumer] = offset
        else:
            assert self.topic.consumers()[consumer] in (self.offsets[consumer], offset)
            self.offsets[consumer] = self.topic.consumers()[consumer]

    @rule(steps=DIES)
    def trim(self, steps: int | None) -> None:
        self.survives(steps, self.topic.trim)

    @rule()
    def trim_cleans_up(self) -> None:
        self.topic.trim()
        live = [commit for commit in self.topic.commits() if commit.segments]
        folders = list(self.topic.segments_folder.iterdir())
        in_the_making = {f.name for f in folders} - {commit.segments[0].file.split("/")[0] for commit in live}
        assert len(in_the_making) == len(folders) - len(live)
        assert all(int(name.split("@")[1]) >= min(self.batch_ids.values()) for name in in_the_making)
        assert len(list((self.topic.path / "commits").iterdir())) == len(self.topic.commits())

    @invariant()
    def every_record_once_at_its_offset(self) -> None:
        for view in (self.topic, Topic.open(self.topic.path)):
            start, end = view.start_offset(), view.end_offset()
            assert end == len(self.expected)
            assert start <= min(self.offsets.values())
            found = [value for batch in view.read(start, end) for value in batch.column("id").to_pylist()]
            assert found == self.expected[start:]
            for consumer, offset in self.offsets.items():
                assert view.lag_records(consumer) == end - offset


TestTopicMachine = TopicMachine.TestCase
TestTopicMachine.settings = settings(max_examples=40, stateful_step_count=30)
