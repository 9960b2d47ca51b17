"""Asking for executors and letting them go, against a scheduler that only notes what it is told."""

import json
from types import SimpleNamespace

import pytest

from sluice.spark import internals
from sluice.spark.attach import executors as module
from sluice.spark.attach.executors import ASK_AGAIN_S, GAP_PATIENCE_S, ClusterExecutors


class Scheduler:
    """A scheduler, its status store and its tracker in one; what it was told is in `told`."""

    def __init__(self, count):
        self.here = {str(number): {"tasks": 0, "blocks": 0} for number in range(count)}
        self.told = []
        self.jobs = []
        self.answers = True

    def statusStore(self):  # noqa: N802
        return self

    statusTracker = schedulerBackend = statusStore  # noqa: N815

    def executorList(self, active):  # noqa: N802
        facts = {"isActive": True, "totalCores": 1, "addTime": 0}
        found = [
            {"id": name, "activeTasks": one["tasks"], "rddBlocks": one["blocks"], **facts}
            for name, one in self.here.items()
        ]
        return [*found, {"id": "driver", "activeTasks": 0, "rddBlocks": 0, **facts}]

    def getActiveJobIds(self):  # noqa: N802
        return self.jobs

    def requestTotalExecutors(self, count, *_):  # noqa: N802
        if not self.answers:
            raise OSError("connection closed")
        self.told.append(("total", count))

    def decommissionExecutor(self, name, _why, adjust_total, _by_executor):  # noqa: N802
        assert not adjust_total, "the total is asked for already"
        self.told.append(("decommission", name))
        return True

    def killExecutors(self, names, adjust_total, _count_failures, force):  # noqa: N802
        assert not adjust_total
        assert not force, "the scheduler knows best who is busy"
        free = [name for name in names if self.here[name]["tasks"] == 0]
        self.told += [("kill", name) for name in free]
        self.here = {name: one for name, one in self.here.items() if name not in free}
        return SimpleNamespace(length=lambda: len(free), apply=lambda position: free[position])


class Names(list):
    add = list.append


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(s=1000.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: now.s)
    return now


def connect(monkeypatch, scheduler, *, drains):
    monkeypatch.setattr(internals, "_json_mapper", lambda _: SimpleNamespace(writeValueAsString=json.dumps))
    utils = SimpleNamespace(toScalaMap=lambda found: found, toSeq=lambda found: found)
    java = SimpleNamespace(util=SimpleNamespace(HashMap=dict, ArrayList=Names, Arrays=None))
    info = SimpleNamespace(ExecutorDecommissionInfo=lambda *_: None)
    apache = SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(scheduler=info)))
    option = SimpleNamespace(Option=SimpleNamespace(apply=lambda _: None))
    return ClusterExecutors(
        SimpleNamespace(
            sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scheduler)),
            _jvm=SimpleNamespace(PythonUtils=utils, java=java, org=apache, scala=option),
            conf=SimpleNamespace(get=lambda *_: "true" if drains else "false"),
        )
    )


def test_more_are_asked_for_by_their_total(monkeypatch, clock):
    scheduler = Scheduler(1)
    told = connect(monkeypatch, scheduler, drains=True).scale_to(4)
    assert scheduler.told == [("total", 4)]
    assert told == "asked for 4 executors, 1 are there"


def test_those_that_leave_are_told_once_and_no_longer_count(monkeypatch, clock):
    scheduler = Scheduler(4)
    scheduler.here["3"]["tasks"] = 1
    executors = connect(monkeypatch, scheduler, drains=True)
    assert executors.scale_to(2) == "decommissioning executors: 0, 1"
    assert [one.executor_id for one in executors.present()] == ["2", "3"]
    executors.keep()
    assert scheduler.told == [("total", 2), ("decommission", "0"), ("decommission", "1")]


def test_without_draining_a_surplus_waits_for_a_moment_without_jobs(monkeypatch, clock):
    scheduler = Scheduler(3)
    scheduler.jobs = [7]
    executors = connect(monkeypatch, scheduler, drains=False)
    assert executors.scale_to(2) == "released executors: none yet; 1 more when they are free"
    executors.keep()
    assert scheduler.told == [("total", 2)]
    scheduler.jobs = []
    executors.keep()
    assert scheduler.told[-1] == ("kill", "0")


def test_queries_that_overlap_for_ever_do_not_keep_a_surplus_for_ever(monkeypatch, clock):
    scheduler = Scheduler(2)
    scheduler.jobs, scheduler.here["0"]["tasks"] = [7], 1
    executors = connect(monkeypatch, scheduler, drains=False)
    executors.scale_to(1)
    clock.s += GAP_PATIENCE_S + 1
    executors.keep()
    assert ("kill", "1") in scheduler.told


def test_what_is_missing_is_asked_for_again_but_not_all_the_time(monkeypatch, clock):
    scheduler = Scheduler(3)
    executors = connect(monkeypatch, scheduler, drains=True)
    executors.scale_to(4)
    executors.keep()
    assert scheduler.told == [("total", 4)]
    clock.s += ASK_AGAIN_S + 1
    executors.keep()
    assert scheduler.told == [("total", 4), ("total", 4)]


def test_a_cluster_manager_that_is_away_is_asked_when_it_is_back(monkeypatch, clock):
    scheduler = Scheduler(1)
    scheduler.answers = False
    executors = connect(monkeypatch, scheduler, drains=True)
    assert "does not answer: connection closed" in executors.scale_to(4)
    scheduler.answers = True
    clock.s += ASK_AGAIN_S + 1
    executors.keep()
    assert scheduler.told == [("total", 4)]


def test_nothing_is_touched_before_somebody_wants_something_and_never_the_last_executor(monkeypatch, clock):
    scheduler = Scheduler(3)
    executors = connect(monkeypatch, scheduler, drains=True)
    clock.s += ASK_AGAIN_S + 1
    executors.keep()
    assert scheduler.told == []
    with pytest.raises(ValueError, match="at least 1 executor, got 0"):
        executors.scale_to(0)
