"""Why a window could not be seen, distinguished in the log; its metrics are unknown in every case."""

import logging
import threading
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from sluice.spark import internals
from sluice.spark.attach import engine as module
from sluice.spark.attach.application import NO_QUERY, ExecutorInfo
from sluice.spark.attach.engine import AttachedEngine

STOPPED = internals.ApplicationEndedError("the Spark application has ended")


class Executors:
    """Two executors, or the error that asking for them raises."""

    def __init__(self, error):
        self.error = error

    def present(self):
        if self.error is not None:
            raise self.error
        facts = {"cores": 1, "active_tasks": 0, "holds_blocks": False, "added_s": 0.0}
        return [ExecutorInfo(executor_id=name, **facts) for name in ("1", "2")]


def attached(monkeypatch, error, *, stopped=False):
    store = SimpleNamespace(active_job_ids=list)
    probe = SimpleNamespace(store=store, forget_all_but=lambda run_ids: None)
    monkeypatch.setattr(module, "StageProbe", lambda spark: probe)
    context = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: stopped))
    spark = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=context))
    queries = SimpleNamespace(running=list, run_ids=frozenset())
    ended = threading.Event()
    return AttachedEngine(spark, Executors(error), queries, (1, 4), ended), ended


@pytest.mark.parametrize(
    ("error", "stopped", "event", "ends"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), False, "event=unanswered", False),
        (Py4JError("An error occurred while calling o7.executorList"), False, "event=unanswered", False),
        (ConnectionRefusedError(111, "Connection refused"), False, "event=unanswered", False),
        (STOPPED, False, "event=application_ended", True),
        (Py4JError("cannot call methods on a stopped SparkContext"), True, "event=application_ended", True),
        (KeyError("totalCores"), False, "event=observation_failed error=\"KeyError: 'totalCores'\"", False),
        (ZeroDivisionError("division by zero"), False, "event=observation_failed", False),
    ],
)
def test_why_nothing_was_seen_is_told_apart(monkeypatch, caplog, error, stopped, event, ends):
    caplog.set_level(logging.DEBUG, logger="sluice")
    engine, ended = attached(monkeypatch, error, stopped=stopped)
    seen = engine.observe()
    assert event in caplog.text
    assert ended.is_set() is ends
    assert seen.operators[NO_QUERY].model_dump(exclude_none=True) == {"parallelism": 1}


def test_a_fault_of_ours_comes_with_its_traceback_for_those_who_debug(monkeypatch, caplog):
    engine, _ = attached(monkeypatch, KeyError("totalCores"))
    caplog.set_level(logging.DEBUG, logger="sluice")
    engine.observe()
    failed, trace = caplog.records
    assert (failed.levelno, trace.levelno) == (logging.ERROR, logging.DEBUG)
    assert "in present" in trace.getMessage()


def test_what_can_be_seen_again_is_seen_again(monkeypatch):
    engine, _ = attached(monkeypatch, Py4JError("away"))
    assert engine.observe().parallelism == {NO_QUERY: 1}
    engine._executors.error = None
    assert engine.observe().parallelism == {NO_QUERY: 2}
