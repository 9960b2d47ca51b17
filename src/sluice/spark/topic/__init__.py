"""The topic: an embedded durable log of records between two operators, one folder on a file system all can reach.

```
topic/
  topic.json            schema, made once
  commits/SEQ.json      one file per committed batch: producer, batch id, offsets, arrival time, checksummed segments
  snapshot.json         what trimmed commits amounted to: first live SEQ, its offset, last batch id of every producer
  segments/…            data files; only those named by a live commit count
  consumers/NAME.json   up to which offset a consumer has finished
```

Offsets count records from 0 without gaps. A batch becomes visible by one rename; the same batch id of the same producer
a second time changes nothing (batch ids of a producer grow, as Spark's do). Only `source`, `sink` and `planner` need
Spark; tasks read and write segments in the JVM (`java/`), which asks `planner` what to read and has it commit:

* `Topic`: create, open, append, read, lag, consumers, trim (`sluice.spark.topic.log`).
* `ReaderControl`, `HeldBack`: the small files by which a running query is steered (`…topic.control`).
* `stream_from(spark, …)`: a streaming DataFrame over a topic (`…topic.source`).
* `TopicSink`: the `foreachBatch` function that appends exactly once (`…topic.sink`).
"""

from sluice.spark.topic.commits import Commit
from sluice.spark.topic.control import HeldBack, ReaderControl
from sluice.spark.topic.files import CorruptTopicError
from sluice.spark.topic.log import Topic

__all__ = ["Commit", "CorruptTopicError", "HeldBack", "ReaderControl", "Topic"]
