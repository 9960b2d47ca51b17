"""Which failures are worth another start, and how many."""

from __future__ import annotations

import pytest

from sluice.errors import BadInputError
from sluice.spark.pipeline.failure import NO_PYTHON, RESTARTS_WITHOUT_PYTHON, Failure, OperatorFailedError


def test_pauses_grow_and_end() -> None:
    failure = Failure("ValueError: no", "…")
    assert [failure.pause_s(restarts) for restarts in range(4)] == [1.0, 2.0, 4.0, None]


@pytest.mark.parametrize(
    "cause",
    [
        "AnalysisException: [UNRESOLVED_COLUMN] no column `x`",
        "StateStoreKeySchemaNotCompatible: [STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match",
        "CorruptTopicError: /topic/segments/a: torn segment",
    ],
)
def test_what_cannot_heal_is_not_tried_again(cause: str) -> None:
    assert Failure(cause, cause).pause_s(0) is None


def test_a_process_that_was_late_is_tried_for_longer() -> None:
    late = Failure("AnalysisException: planning failed", f"… {NO_PYTHON} …")
    assert [late.pause_s(restarts) for restarts in (0, 5, RESTARTS_WITHOUT_PYTHON)] == [1.0, 4.0, None]


def test_an_error_of_our_own_keeps_its_name() -> None:
    pytest.importorskip("pyspark")
    assert Failure.of(BadInputError("no control file")).cause == "BadInputError: no control file"


def test_the_message_has_the_cause_and_the_tries() -> None:
    failure = Failure("ValueError: six is right out", "the whole traceback")
    failed = OperatorFailedError("checked", failure, 3)
    assert str(failed) == "operator 'checked' failed: ValueError: six is right out (also after 3 restarts)"
    assert failed.details == "the whole traceback"
