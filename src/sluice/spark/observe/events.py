"""Spark's JSON as data: progress events (one per micro-batch) and the stages of its status store. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_BATCH = re.compile(r"batch = (\d+)")

BatchKey = tuple[str, int]
"""Run id and batch id: a query that restarts may repeat the batch in which it failed."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One finished micro-batch. Times are Unix time."""

    run_id: str
    batch_id: int
    started_s: float
    ended_s: float
    records: int
    scans: int = 1
    """How often a task per slot read: once per input, once more for an input that is joined with itself."""
    offset_records: int | None = None
    """What its offsets moved past, where they count records: tasks that are done again read some of it again."""
    head_start_s: float = 0.0
    """How long paced slots had worked when the batch was planned."""
    lag_records: int | None = None
    """What was left behind the batch when it was planned, if all its sources tell."""
    output_records: int | None = None
    """What its sink counted, if it counts."""
    state_bytes: float | None = None
    state_io_bytes: float | None = None

    @property
    def key(self) -> BatchKey:
        return self.run_id, self.batch_id

    @property
    def duration_s(self) -> float:
        return self.ended_s - self.started_s


@dataclass(frozen=True, kw_only=True)
class BatchStage:
    """One finished stage of a batch: what its tasks took, summed over them."""

    run_id: str
    batch_id: int
    tasks: int
    run_s: float
    cpu_s: float
    input_records: int
    """Records read from sources: 0 for a stage that only reads what another one shuffled."""
    output_records: int
    output_bytes: int
    started_s: float | None = None
    """When its first task was launched."""
    ended_s: float | None = None
    stage_id: int = 0
    repeated: bool = False
    """Some of its tasks were lost and done again: the figures are not those of its records."""

    @property
    def key(self) -> BatchKey:
        return self.run_id, self.batch_id


def read_batch(progress: Mapping[str, Any]) -> Batch | None:
    """A progress event of any query; null for a trigger that found nothing to do."""
    if "addBatch" not in progress["durationMs"]:
        return None
    # Spark's timestamp is when the trigger fired; Python 3.10 does not read its Z
    started_s = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    sources, states = progress.get("sources", []), progress.get("stateOperators", [])
    return Batch(
        run_id=progress["runId"],
        batch_id=int(progress["batchId"]),
        started_s=started_s,
        ended_s=started_s + progress["durationMs"].get("triggerExecution", 0) / 1000,
        records=sum(_records(source) for source in sources),
        scans=max(1, sum(_scans(source) for source in sources)),
        offset_records=_offset_records(sources),
        head_start_s=max((_end_offset(source).get("head_start_s", 0.0) for source in sources), default=0.0),
        lag_records=read_lag(progress),
        output_records=_counted((progress.get("sink") or {}).get("numOutputRows")),
        state_bytes=sum(_state_bytes(state) for state in states) if states else None,
        state_io_bytes=_state_io_bytes(states),
    )


def records_per_topic(progress: Mapping[str, Any]) -> dict[str, int]:
    """Rows Spark counted per topic. A topic that a query reads twice (a join with itself) is counted once."""
    return {_end_offset(source)["topic"]: _records(source) for source in progress.get("sources", [])}


def read_lag(progress: Mapping[str, Any]) -> int | None:
    """Offsets behind the newest ones (whole numbers, or Kafka's per partition); null if one source does not tell."""
    lags = [_source_lag(source) for source in progress.get("sources", [])]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known and len(known) == len(lags) else None


def read_stages(job: Mapping[str, Any], stages: Sequence[Mapping[str, Any]]) -> list[BatchStage]:
    """The completed stages of a job of a streaming query, whose description names the batch it belongs to."""
    found = _BATCH.search(job.get("description") or "")
    if not found:
        return []
    return [
        BatchStage(
            run_id=job.get("jobGroup") or "",
            batch_id=int(found.group(1)),
            stage_id=int(stage.get("stageId", 0)),
            tasks=int(stage["numTasks"]),
            run_s=stage["executorRunTime"] / 1e3,
            cpu_s=(stage["executorCpuTime"] + stage["executorDeserializeCpuTime"]) / 1e9,
            input_records=int(stage["inputRecords"]),
            output_records=int(stage["outputRecords"]),
            output_bytes=int(stage["outputBytes"]),
            started_s=_seconds(stage.get("firstTaskLaunchedTime") or stage.get("submissionTime")),
            ended_s=_seconds(stage.get("completionTime")),
            repeated=stage["attemptId"] > 0 or stage["numFailedTasks"] > 0,
        )
        for stage in stages
        if stage["status"] == "COMPLETE"
    ]


def _seconds(unix_ms: float | None) -> float | None:
    return None if unix_ms is None else unix_ms / 1e3


def _counted(rows: int | None) -> int | None:
    """Spark says -1 for a sink that does not count."""
    return rows if rows is not None and rows >= 0 else None


def _end_offset(source: Mapping[str, Any]) -> Mapping[str, Any]:
    offset = source.get("endOffset")
    return offset if isinstance(offset, dict) else {}


def _records(source: Mapping[str, Any]) -> int:
    return int(source["numInputRows"]) // max(1, _scans(source))


def _offset_records(sources: Sequence[Mapping[str, Any]]) -> int | None:
    """Null if one of the sources does not count records."""
    moved = 0
    for source in sources:
        end, start = _plain_offset(source.get("endOffset")), _plain_offset(source.get("startOffset"))
        if end is None or isinstance(_end_offset(source).get("offset"), dict):
            return None
        moved += end - (start or 0)
    return moved


def _scans(source: Mapping[str, Any]) -> int:
    """How often a source was read: only our topics' offsets count records and so tell."""
    end = _end_offset(source).get("offset")
    if not isinstance(_end_offset(source).get("topic"), str) or end is None:
        return 1
    rows, start = int(source["numInputRows"]), (source["startOffset"] or {}).get("offset", 0)
    moved = _total(end) - _total(start)
    if not moved:
        return 0
    if isinstance(end, dict):
        # offsets of Kafka also count the marks of transactions
        return max(1, round(rows / moved))
    return rows // moved if rows % moved == 0 else 1


def _total(offset: Any) -> int:
    """Of a topic of ours: a number of records, or one offset per partition."""
    return sum(offset.values()) if isinstance(offset, dict) else int(offset)


def _source_lag(source: Mapping[str, Any]) -> int | None:
    end, latest = _plain_offset(source.get("endOffset")), _plain_offset(source.get("latestOffset"))
    if end is not None and latest is not None:
        return max(0, latest - end)
    done, there = _partition_offsets(source.get("endOffset")), _partition_offsets(source.get("latestOffset"))
    if done and there:
        return sum(max(0, offset - done.get(partition, 0)) for partition, offset in there.items())
    behind = (source.get("metrics") or {}).get("avgOffsetsBehindLatest")
    if behind is None:
        return None
    return round(float(behind) * sum(len(topic) for topic in _end_offset(source).values()))


def _plain_offset(offset: Any) -> int | None:
    """The offset as a count of records, for sources that count them; null for all others."""
    if isinstance(offset, dict):
        is_ours = isinstance(offset.get("topic"), str)
        offset = offset.get("offset")
        if is_ours and isinstance(offset, dict):
            return _total(offset)
    return offset if isinstance(offset, int) and not isinstance(offset, bool) else None


def _partition_offsets(offset: Any) -> dict[tuple[str, str], int]:
    """Topic and partition -> offset, as Spark's Kafka source has them; empty for all others."""
    if not isinstance(offset, dict) or not all(isinstance(topic, dict) for topic in offset.values()):
        return {}
    return {
        (name, partition): value
        for name, topic in offset.items()
        for partition, value in topic.items()
        if isinstance(value, int)
    }


def _state_bytes(state: Mapping[str, Any]) -> float:
    return float(state.get("memoryUsedBytes", 0)) + float(_custom(state).get("rocksdbSstFileSize", 0))


def _state_io_bytes(states: Sequence[Mapping[str, Any]]) -> float | None:
    """Null where a state store does not count its bytes; only RocksDB's does."""
    moved = [_custom(state).get(f"rocksdbTotalBytes{way}") for state in states for way in ("Read", "Written")]
    known = [float(count) for count in moved if count is not None]
    return sum(known) if len(known) == len(moved) else None


def _custom(state: Mapping[str, Any]) -> Mapping[str, Any]:
    return state.get("customMetrics") or {}
