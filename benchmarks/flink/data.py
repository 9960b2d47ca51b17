"""The same records for both engines: a topic of ours, and two Parquet files for Flink's two readers.

Flink's file source gives out files in no particular order; with more files than readers records would be late. Each of
the two has every other stretch of the stream, in the order of their times.
"""

from __future__ import annotations

import fcntl
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.flink.queries import Stream
from sluice.spark.topic import Topic

RECORDS_PER_COMMIT = 1_000_000
STRETCH = 50_000
READERS = 2
KEEPER = "keeps-it-all"


class Data:
    """Of one stream, below a folder; written once, with one more reader of the topic so that nothing is dropped."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        self.topic = folder / f"{stream.name}-{stream.records}" / "topic"
        self.files = self.topic.with_name("files")
        self._stream = stream
        self._complete = self.topic.with_name("complete")

    def make(self) -> None:
        """One process at a time; the others wait and find it done."""
        self.topic.parent.mkdir(parents=True, exist_ok=True)
        with self.topic.with_name("lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._complete.exists():
                self._write()
                self._complete.touch()

    def _write(self) -> None:
        schema = self._stream.make(0, 1).schema
        topic = Topic.create(self.topic, schema)
        topic.register(KEEPER)
        self.files.mkdir(exist_ok=True)
        writers = [
            pq.ParquetWriter(self.files / f"{number}.parquet", schema, compression="none", write_statistics=False)
            for number in range(READERS)
        ]
        for number, first in enumerate(range(0, self._stream.records, RECORDS_PER_COMMIT)):
            table = self._stream.make(first, min(RECORDS_PER_COMMIT, self._stream.records - first)).cast(schema)
            topic.append(table, producer="bench", batch_id=number)
            stretches = [table.slice(start, STRETCH) for start in range(0, table.num_rows, STRETCH)]
            for reader, writer in enumerate(writers):
                if mine := stretches[reader::READERS]:
                    writer.write_table(pa.concat_tables(mine))
        for writer in writers:
            writer.close()

    def forget_readers(self) -> None:
        """So that the next round reads from the beginning."""
        topic = Topic.open(self.topic)
        for consumer in topic.consumers().keys() - {KEEPER}:
            topic.unregister(consumer)
