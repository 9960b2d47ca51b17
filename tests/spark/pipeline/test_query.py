"""The loop's thread and Spark's listener thread change one operator at the same time. Without Spark."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from sluice.spark.pipeline.compile import Query
from sluice.spark.pipeline.folders import Folders, QueryState
from sluice.spark.pipeline.query import OperatorQuery, QuerySettings
from sluice.spark.pipeline.read_limit import FIRST_RECORDS_PER_SLOT, ReadLimit
from sluice.spark.pipeline.specs import OperatorSpec
from sluice.spark.topic import ReaderControl

HEAD_START_S = 0.5


@pytest.fixture
def query(tmp_path: Path) -> OperatorQuery:
    spec = OperatorSpec(name="op", function=lambda frame: frame, inputs=("in",), watermarks={})
    compiled = Query(name="op", operators=(spec,), inputs=("in",), output="out", schema=Mock(), stateful=False)
    state = QueryState(parallelism=1, state_partitions=1)
    made = OperatorQuery(compiled, Mock(), Folders(tmp_path), QuerySettings(), state, store=Mock(), topics={})
    made.run_ids = ["run"]
    made.on_progress(progress(0))  # the first batch of a run is not learned from as others are
    return made


def progress(batch_id: int) -> dict[str, Any]:
    offsets = [{"topic": "in", "offset": FIRST_RECORDS_PER_SLOT * number} for number in (batch_id, batch_id + 1)]
    records = {"startOffset": offsets[0], "endOffset": offsets[1], "numInputRows": FIRST_RECORDS_PER_SLOT}
    return {
        "runId": "run",
        "batchId": batch_id,
        "durationMs": {"triggerExecution": 2000},
        "sources": [records],
    }


def control(query: OperatorQuery) -> ReaderControl:
    return ReaderControl.load(query._folders.control("op", "in"))


def test_a_rescale_while_a_batch_is_learned_from_is_not_lost(
    query: OperatorQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning, rescaled = threading.Event(), threading.Event()
    records = query._limit.records
    after = ReadLimit.after

    def slowly(self: ReadLimit, **batch: Any) -> ReadLimit:
        learning.set()
        rescaled.wait(HEAD_START_S)  # a rescale that does not wait for us is done by then
        return after(self, **batch)

    monkeypatch.setattr(ReadLimit, "after", slowly)
    listener = threading.Thread(target=query.on_progress, args=(progress(1),))
    listener.start()
    assert learning.wait(10)
    query.set_parallelism(4)
    rescaled.set()
    listener.join()
    assert query._limit.parallelism == query.state.parallelism == control(query).partitions == 4
    assert control(query).max_records_per_batch == 4 * records


def test_changes_of_state_from_two_threads_all_count(query: OperatorQuery) -> None:
    def rescale() -> None:
        for parallelism in range(1, 200):
            query.set_parallelism(parallelism)

    rescaling = threading.Thread(target=rescale)
    rescaling.start()
    for partitions in range(1, 2000):
        query.change_state(state_partitions=partitions)
    rescaling.join()
    assert query.state == QueryState(parallelism=199, state_partitions=1999)


def test_only_a_batch_of_the_present_run_ends_a_row_of_restarts(query: OperatorQuery) -> None:
    query.restarts_in_a_row = 2
    query.on_progress({**progress(3), "runId": "the run before"})
    assert query.restarts_in_a_row == 2
    query.on_progress(progress(3))
    assert query.restarts_in_a_row == 0
