"""Records that tasks read again after a loss are no duplicates; any other surplus is."""

import pytest

from sluice.spark.observe.events import Batch, BatchStage, read_batch
from sluice.spark.pipeline.read_count import NOTICED_S, ReadCount


def batch(number: int, records: int, offset_records: int | None) -> Batch:
    start_s = 100.0 * number
    return Batch(
        run_id="r",
        batch_id=number,
        started_s=start_s,
        ended_s=start_s + 2,
        records=records,
        offset_records=offset_records,
    )


def stage(number: int, *, repeated: bool) -> BatchStage:
    return BatchStage(
        run_id="r",
        batch_id=number,
        tasks=2,
        run_s=1,
        cpu_s=1,
        input_records=15,
        output_records=0,
        output_bytes=0,
        repeated=repeated,
    )


def counted(*batches: Batch) -> ReadCount:
    count = ReadCount()
    for one in batches:
        count.add(one)
    return count


def test_a_surplus_without_a_loss_stays():
    count = counted(batch(1, 10, 10), batch(2, 15, 10))
    count.add_stages([stage(2, repeated=False)])
    assert count.records == 25


def test_tasks_done_again_read_their_records_once():
    count = counted(batch(1, 12, 10), batch(2, 15, 10))
    count.add_stages([stage(2, repeated=True)])
    assert count.records == 22


@pytest.mark.parametrize(
    ("lost_s", "records"), [(201.0, 10), (202 + NOTICED_S, 10), (199 - NOTICED_S, 15), (203 + NOTICED_S, 15)]
)
def test_a_worker_lost_while_a_batch_ran_explains_its_surplus(lost_s, records):
    count = counted(batch(2, 15, 10))
    count.worker_lost(lost_s)
    assert count.records == records


def test_records_that_offsets_do_not_count_are_those_of_the_tasks():
    count = counted(batch(2, 15, None))
    count.worker_lost(201.0)
    assert count.records == 15


@pytest.mark.parametrize(("start", "end", "moved"), [(None, 7, 7), (5, 12, 7), ({"0": 5}, {"0": 12}, None)])
def test_what_offsets_moved_past_is_known_where_they_count_records(start, end, moved):
    source = {
        "numInputRows": 9,
        "startOffset": None if start is None else {"topic": "t", "offset": start},
        "endOffset": {"topic": "t", "offset": end},
    }
    progress = {
        "durationMs": {"addBatch": 1, "triggerExecution": 2},
        "timestamp": "2026-01-01T00:00:00.000Z",
        "runId": "r",
        "batchId": 3,
        "sources": [source],
    }
    found = read_batch(progress)
    assert found is not None
    assert found.offset_records == moved
