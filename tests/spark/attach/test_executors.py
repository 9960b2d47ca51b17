"""Requesting and releasing executors, against a scheduler that only notes its calls."""

import json
from types import SimpleNamespace

import pytest

from sluice.spark.attach import executors as module
from sluice.spark.attach.executors import GAP_PATIENCE_S, REQUEST_AGAIN_S, ClusterExecutors
from sluice.spark.internals import status


class Scheduler:
    """A scheduler, its status store and its tracker in one; its calls are in `calls`."""

    def __init__(self, count):
        self.here = {str(number): {"tasks": 0, "blocks": 0} for number in range(count)}
        self.calls = []
        self.jobs = []
        self.answers = True

    def statusStore(self):  # noqa: N802
        return self

    statusTracker = schedulerBackend = statusStore  # noqa: N815

    def executorList(self, active):  # noqa: N802
        facts = {"isActive": True, "totalCores": 1}
        found = [
            {"id": name, "activeTasks": one["tasks"], "rddBlocks": one["blocks"], "addTime": one.get("at", 0), **facts}
            for name, one in self.here.items()
        ]
        return [*found, {"id": "driver", "activeTasks": 0, "rddBlocks": 0, "addTime": 0, **facts}]

    def getExecutorIds(self):  # noqa: N802
        known = [name for name, one in self.here.items() if not one.get("lost")]
        return SimpleNamespace(mkString=lambda sign: sign.join(known))

    def getActiveJobIds(self):  # noqa: N802
        return self.jobs

    def requestTotalExecutors(self, count, *_):  # noqa: N802
        if not self.answers:
            raise OSError("connection closed")
        self.calls.append(("total", count))

    def decommissionExecutor(self, name, _why, adjust_total, _by_executor):  # noqa: N802
        assert not adjust_total, "the total is requested already"
        self.calls.append(("decommission", name))
        return True

    def killExecutors(self, names, adjust_total, _count_failures, force):  # noqa: N802
        assert not adjust_total
        assert not force, "the scheduler knows best who is busy"
        free = [name for name in names if self.here[name]["tasks"] == 0]
        self.calls += [("kill", name) for name in free]
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
    monkeypatch.setattr(status, "_json_mapper", lambda _: SimpleNamespace(writeValueAsString=json.dumps))
    utils = SimpleNamespace(toScalaMap=lambda found: found, toSeq=lambda found: found)
    java = SimpleNamespace(util=SimpleNamespace(HashMap=dict, ArrayList=Names, Arrays=SimpleNamespace(toString=str)))
    info = SimpleNamespace(ExecutorDecommissionInfo=lambda *_: None)
    apache = SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(scheduler=info)))
    option = SimpleNamespace(Option=SimpleNamespace(apply=lambda _: None))
    return ClusterExecutors(
        SimpleNamespace(
            version="4.3.0",
            sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scheduler)),
            _jvm=SimpleNamespace(PythonUtils=utils, java=java, org=apache, scala=option),
        ),
        drains=drains,
    )


def keep(executors, count, **facts):
    return executors.reconcile(count, executors.present(), **facts)


def test_more_are_requested_by_their_total(monkeypatch, clock):
    scheduler = Scheduler(1)
    said = keep(connect(monkeypatch, scheduler, drains=True), 4)
    assert scheduler.calls == [("total", 4)]
    assert said == "requested 4 executors, 1 are there"


def test_an_executor_that_only_the_store_still_lists_is_lost(monkeypatch, clock):
    scheduler = Scheduler(3)
    executors = connect(monkeypatch, scheduler, drains=True)
    keep(executors, 3)
    scheduler.here["1"]["lost"] = True
    assert [one.executor_id for one in executors.present()] == ["0", "2"]
    scheduler.calls.clear()
    clock.s += REQUEST_AGAIN_S + 1
    keep(executors, 3)
    assert scheduler.calls == [("total", 3)]


def test_where_the_scheduler_does_not_say_the_store_is_believed(monkeypatch, clock):
    scheduler = Scheduler(2)
    scheduler.getExecutorIds = None
    assert len(connect(monkeypatch, scheduler, drains=True).present()) == 2


def test_a_target_that_is_reached_costs_no_call(monkeypatch, clock):
    scheduler = Scheduler(2)
    executors = connect(monkeypatch, scheduler, drains=True)
    keep(executors, 2)
    scheduler.calls.clear()
    clock.s += REQUEST_AGAIN_S + 1
    assert keep(executors, 2) is None
    assert scheduler.calls == []


def test_those_that_leave_are_decommissioned_once_and_no_longer_count(monkeypatch, clock):
    scheduler = Scheduler(4)
    scheduler.here["3"]["tasks"] = 1
    executors = connect(monkeypatch, scheduler, drains=True)
    assert keep(executors, 2) == "decommissioning executors: 0, 1"
    assert [one.executor_id for one in executors.present()] == ["2", "3"]
    keep(executors, 2)
    assert scheduler.calls == [("total", 2), ("decommission", "0"), ("decommission", "1")]


def test_without_draining_a_surplus_waits_for_a_moment_without_jobs(monkeypatch, clock):
    scheduler = Scheduler(3)
    scheduler.jobs = [7]
    executors = connect(monkeypatch, scheduler, drains=False)
    assert keep(executors, 2) is None
    keep(executors, 2)
    assert scheduler.calls == [("total", 2)]
    scheduler.jobs = []
    assert keep(executors, 2) == "released executors: 0"
    assert scheduler.calls[-1] == ("kill", "0")


def test_queries_that_overlap_for_ever_do_not_keep_a_surplus_for_ever(monkeypatch, clock):
    scheduler = Scheduler(2)
    scheduler.jobs, scheduler.here["0"]["tasks"] = [7], 1
    executors = connect(monkeypatch, scheduler, drains=False)
    keep(executors, 1)
    clock.s += GAP_PATIENCE_S + 1
    keep(executors, 1)
    assert ("kill", "1") in scheduler.calls


def test_jobs_of_nobody_we_know_are_waited_for_without_draining(monkeypatch, clock):
    scheduler = Scheduler(2)
    scheduler.jobs, scheduler.here["0"]["tasks"] = [7], 1
    executors = connect(monkeypatch, scheduler, drains=False)
    keep(executors, 1, others_work=True)
    clock.s += 100 * GAP_PATIENCE_S
    keep(executors, 1, others_work=True)
    assert scheduler.calls == [("total", 1), ("total", 1)]
    scheduler.jobs = []
    keep(executors, 1)
    assert scheduler.calls[-1] == ("kill", "1")


def test_executors_that_have_left_are_forgotten(monkeypatch, clock):
    scheduler = Scheduler(1)
    executors = connect(monkeypatch, scheduler, drains=True)
    for number in range(1, 101):
        scheduler.here[str(number)] = {"tasks": 0, "blocks": 0}
        keep(executors, 1)
        scheduler.here = {name: one for name, one in scheduler.here.items() if name not in executors._leaving}
    executors.present()
    assert executors._leaving == set()


def test_what_is_missing_is_requested_again_but_not_all_the_time(monkeypatch, clock):
    scheduler = Scheduler(3)
    executors = connect(monkeypatch, scheduler, drains=True)
    keep(executors, 4)
    keep(executors, 4)
    assert scheduler.calls == [("total", 4)]
    clock.s += REQUEST_AGAIN_S + 1
    keep(executors, 4)
    assert scheduler.calls == [("total", 4), ("total", 4)]


def test_a_cluster_manager_that_is_away_gets_the_request_when_it_is_back(monkeypatch, clock):
    scheduler = Scheduler(1)
    scheduler.answers = False
    executors = connect(monkeypatch, scheduler, drains=True)
    assert "does not answer: connection closed" in keep(executors, 4)
    scheduler.answers = True
    clock.s += REQUEST_AGAIN_S + 1
    keep(executors, 4)
    assert scheduler.calls == [("total", 4)]


def test_the_last_executor_is_never_released(monkeypatch, clock):
    with pytest.raises(ValueError, match="at least 1 executor, got 0"):
        keep(connect(monkeypatch, Scheduler(3), drains=True), 0)


@pytest.mark.parametrize("drains", [True, False])
def test_a_master_that_lost_count_does_not_replace_for_ever_what_is_released(monkeypatch, clock, drains):
    scheduler = Scheduler(4)
    executors = connect(monkeypatch, scheduler, drains=drains)
    keep(executors, 4)
    uncounted, limits, started = {"0"}, [4], 4
    for _second in range(60):
        clock.s += 1
        limits += [count for name, count in scheduler.calls if name == "total"]
        gone = [name for call, name in scheduler.calls if call in ("decommission", "kill")]
        scheduler.calls.clear()
        scheduler.here = {name: one for name, one in scheduler.here.items() if name not in gone}
        if len(scheduler.here.keys() - uncounted) < limits[-1]:
            scheduler.here[f"{started}"] = {"tasks": 0, "blocks": 0, "at": started}
            started += 1
        keep(executors, 4)
    assert started <= 8, "a surplus was replaced again and again"
    assert len(executors.present()) == 4

    # the one that was not counted is lost: now the master has to start another
    del scheduler.here["0"]
    clock.s += 1
    keep(executors, 4)
    assert ("total", 4) in scheduler.calls
