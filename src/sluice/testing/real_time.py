"""A steady load between two topics, in real-time mode and in micro-batches: latency, gaps of rescales, what was lost.

python -m sluice.testing.real_time BOOTSTRAP ROOT QUERY SECONDS RATE MODE... prints the figures of one query in these
modes (real-time, micro-batch), measured in one session one after the other. Records are written and read by clients
that know nothing of sluice.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.model import Target
from sluice.spark.kafka import connector
from sluice.spark.kafka.connection import Broker
from sluice.spark.kafka.store import KafkaTopics
from sluice.spark.pipeline.compile import compile_pipeline
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.real_time.engine import RealTimeEngine
from sluice.spark.real_time.plan import plan_real_time
from sluice.spark.session import open_session, session_settings
from sluice.testing.kafka import make_topic, read_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 2
STATE_PARTITIONS = 2
SLOTS = 10
KEYS = 50
PATIENCE_S = 60.0
WARM_UP_S = 5.0
WINDOW_US = 10_000_000
SCHEMA = "id BIGINT, sent_us BIGINT, key BIGINT, price DOUBLE"


@dataclass
class ModeFigures:
    """Latency in milliseconds, from sending a record to receiving what became of it."""

    query: str
    mode: str
    records: int
    p50_ms: float
    p99_ms: float
    lost: int
    twice: int
    """Records counted twice, and results (of a count: updates) that came again."""
    results: int
    """Different results that were compared with those that are right: records, or counts by key and window."""
    gaps_s: dict[str, float] = field(default_factory=dict)
    """The longest silence of the output around a rescale."""


def make_pipeline(query: str, source: str, sink: str) -> Pipeline:
    """`q1`: one record in, one out. `count`: records per key and window of ten seconds, each update at once."""
    pipeline = Pipeline(query)
    pipeline.source("bids", SCHEMA, topic=source)

    def euros(bids: DataFrame) -> DataFrame:
        return bids.selectExpr("id", "sent_us", "price * 0.908D AS price")

    def counted(bids: DataFrame) -> DataFrame:
        from pyspark.sql.functions import count, max, timestamp_micros, window

        at = bids.withColumn("at", timestamp_micros("sent_us"))
        groups = at.withWatermark("at", "30 seconds").groupBy(window("at", "10 seconds"), "key")
        found = groups.agg(count("*").alias("records"), max("sent_us").alias("sent_us"))
        return found.selectExpr("window.start AS start", "key", "records", "sent_us")

    if query == "q1":
        pipeline.operator("euros", euros, "bids")
        pipeline.sink("out", "euros", topic=sink)
    else:
        pipeline.operator("counted", counted, "bids", output_mode="update", state_partitions=STATE_PARTITIONS)
        pipeline.sink("out", "counted", topic=sink)
    return pipeline


class Load:
    """Sends at a steady rate and notes when which record comes back."""

    def __init__(self, bootstrap: str, source: str, sink: str, rate: float) -> None:
        self._bootstrap, self._source, self._sink, self._rate = bootstrap, source, sink, rate
        self.sent_us: list[int] = []
        """When the record of this id was sent."""
        self.received: list[tuple[float, int]] = []
        """When (Unix time), and when it had been sent in microseconds."""
        self._stop = threading.Event()
        self._silent = threading.Event()

    @contextmanager
    def running(self) -> Iterator[Load]:
        threads = [threading.Thread(target=work) for work in (self._receive, self._send)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._silent.set()
            self._stop.set()
            for thread in threads:
                thread.join()

    def end_sending(self) -> None:
        self._silent.set()

    def _send(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 0, "acks": "all"})
        began_s = time.monotonic()
        while not self._silent.is_set():
            due = int((time.monotonic() - began_s) * self._rate)
            while (number := len(self.sent_us)) < due:
                sent_us = int(time.time() * 1e6)
                record = {"id": number, "sent_us": sent_us, "key": number % KEYS, "price": 1.0}
                producer.produce(self._source, json.dumps(record), partition=number % PARTITIONS)
                self.sent_us.append(sent_us)
            producer.poll(0)
            time.sleep(0.001)
        producer.close()

    def _receive(self) -> None:
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self._bootstrap, "group.id": "observer", "fetch.wait.max.ms": 5}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.assign([TopicPartition(self._sink, partition, 0) for partition in range(PARTITIONS)])
        while not self._stop.is_set():
            for message in consumer.consume(500, 0.002):
                if message.error() is None:
                    self.received.append((time.time(), json.loads(message.value() or b"{}")["sent_us"]))
        consumer.close()

    def await_output(self, since: int = 0) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while len(self.received) <= since:
            assert time.monotonic() < deadline_s, "no output"
            time.sleep(0.01)

    def await_everything(self) -> None:
        """Until the record that was sent last has come back, and nothing follows it."""
        deadline_s = time.monotonic() + PATIENCE_S
        count = -1
        while count != len(self.received) and time.monotonic() < deadline_s:
            count = len(self.received)
            time.sleep(2.0)

    def latencies_ms(self, since_s: float, until_s: float) -> list[float]:
        return sorted((at - us / 1e6) * 1e3 for at, us in self.received if since_s <= at < until_s)

    def gap_s(self, since_s: float, until_s: float) -> float:
        times = [at for at, _ in self.received if since_s <= at <= until_s]
        return max((later - earlier for earlier, later in itertools.pairwise(times)), default=float("nan"))


def measure_real_time(
    spark: SparkSession, bootstrap: str, root: Path, query: str, *, seconds: float, rate: float
) -> ModeFigures:
    """Steady first; then up to four tasks and down to one, with load all the while."""
    source, sink, pipeline, store = _prepare(bootstrap, query, "real-time")
    engine = RealTimeEngine(pipeline, root / f"real-time-{query}", slots=SLOTS, store=store, batch_s=5.0, spark=spark)
    work = engine.graph.names[1]
    fixed = {name: engine.graph[name].min_parallelism for name in engine.graph.names}
    engine.start(Target(parallelism={**fixed, work: 2}))
    gaps: dict[str, float] = {}
    with Load(bootstrap, source, sink, rate).running() as load:
        load.await_output()
        latencies_ms = _steady(load, seconds)
        before = 2
        for after in (4, 1):
            began_s, seen = time.time(), len(load.received)
            done = engine.reconcile(Target(parallelism={**fixed, work: after}))
            assert all(change.error is None for change in done.changes.values()), done
            load.await_output(since=max(seen, len(load.received)))
            time.sleep(2.0)
            gaps[f"{before} -> {after}"] = round(load.gap_s(began_s, time.time()), 3)
            before = after
        load.end_sending()
        load.await_everything()
        count = engine.stop()
        assert (count.lost, count.duplicated) == (0, 0), count
        return _figures(query, "real-time", bootstrap, sink, load, latencies_ms, gaps)


def measure_micro_batch(
    spark: SparkSession, bootstrap: str, root: Path, query: str, *, seconds: float, rate: float
) -> ModeFigures:
    """The same query with Spark's own connector and batches as short as they can be."""
    source, sink, pipeline, _ = _prepare(bootstrap, query, "micro-batch")
    plan = plan_real_time(pipeline, compile_pipeline(pipeline, spark))
    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select("value")
    )
    writer = (
        plan.build(messages, 2)
        .writeStream.format("kafka")
        .options(**{"kafka.bootstrap.servers": bootstrap, "topic": sink})
        .outputMode("update" if plan.stateful else "append")
        .option("checkpointLocation", str(root / f"micro-batch-{query}"))
        .trigger(processingTime="0 seconds")
    )
    with session_settings(spark, {"spark.sql.shuffle.partitions": "2"}, pool="micro-batch"):
        streaming = writer.start()
    with Load(bootstrap, source, sink, rate).running() as load:
        load.await_output()
        latencies_ms = _steady(load, seconds)
        load.end_sending()
        load.await_everything()
        streaming.stop()
        return _figures(query, "micro-batch", bootstrap, sink, load, latencies_ms, {})


def _prepare(bootstrap: str, query: str, mode: str) -> tuple[str, str, Pipeline, KafkaTopics]:
    prefix = f"{mode}-{query}-{int(time.time())}"
    source, sink = f"{prefix}-in", f"{prefix}-out"
    for topic in (source, sink):
        make_topic(bootstrap, topic, PARTITIONS)
    pipeline = make_pipeline(query, source, sink)
    return source, sink, pipeline, KafkaTopics(Broker(bootstrap=bootstrap, prefix=prefix), pipeline.named_topics())


def _steady(load: Load, seconds: float) -> list[float]:
    """Latencies of some seconds, and of more where nothing came back in them."""
    time.sleep(WARM_UP_S)
    began_s = time.time()
    seen = len(load.received)
    time.sleep(seconds)
    load.await_output(since=seen)
    return load.latencies_ms(began_s, time.time())


def _figures(
    query: str, mode: str, bootstrap: str, sink: str, load: Load, latencies_ms: list[float], gaps: dict[str, float]
) -> ModeFigures:
    records = [json.loads(value) for value in read_values(bootstrap, sink)]
    compare = compare_conversions if query == "q1" else compare_counts
    lost, twice, results = compare(load.sent_us, records)
    p50_ms, p99_ms = (round(latencies_ms[int(share * (len(latencies_ms) - 1))], 1) for share in (0.5, 0.99))
    return ModeFigures(query, mode, len(load.sent_us), p50_ms, p99_ms, lost, twice, results, gaps)


def compare_conversions(sent_us: Sequence[int], records: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Lost, twice, results: every record sent must have come back converted, once; any other result is a failure."""
    found = Counter((record["id"], record["sent_us"], round(record["price"], 9)) for record in records)
    expected = {(number, us, 0.908) for number, us in enumerate(sent_us)}
    assert found.keys() <= expected, f"results of no record: {sorted(found.keys() - expected)[:5]}"
    return len(expected - found.keys()), found.total() - len(found), len(found)


def compare_counts(sent_us: Sequence[int], records: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Lost, twice, results: the last count of every key and window must be the true one, and no update come again."""
    expected = Counter((us // WINDOW_US, number % KEYS) for number, us in enumerate(sent_us))
    updates = Counter((_window(record["start"]), record["key"], record["records"]) for record in records)
    final: Counter[tuple[int, int]] = Counter()
    for window, key, count in updates:
        final[window, key] = max(final[window, key], count)
    lost, too_many = (expected - final).total(), (final - expected).total()
    return lost, too_many + updates.total() - len(updates), len(final)


def _window(start: str) -> int:
    """The number of the window that begins then."""
    return round(datetime.fromisoformat(start.replace("Z", "+00:00")).timestamp() * 1e6) // WINDOW_US


MODES = {"real-time": measure_real_time, "micro-batch": measure_micro_batch}


def main(bootstrap: str, root: Path, query: str, seconds: float, rate: float, modes: list[str]) -> None:
    with open_session("real-time", threads=SLOTS, settings=connector.session_settings()) as spark:
        for measure in (MODES[mode] for mode in modes):
            print(json.dumps(asdict(measure(spark, bootstrap, root, query, seconds=seconds, rate=rate))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], float(sys.argv[4]), float(sys.argv[5]), sys.argv[6:])
