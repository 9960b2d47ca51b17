"""An attached application with everything of Spark replaced: several sessions, other jobs, and what is kept of them."""

import gc
import threading
import tracemalloc
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from sluice.control.decider import Decider
from sluice.control.guards import Guards, Situation
from sluice.control.loop import Loop
from sluice.journal.file import MemoryJournal
from sluice.model import Recommendation, Target
from sluice.protocol import policies
from sluice.spark.attach import engine as module
from sluice.spark.attach.application import NO_QUERY, ExecutorInfo, distinct_names
from sluice.spark.attach.engine import BATCHES_KEPT, CHANGES_KEPT, AttachedEngine
from sluice.spark.attach.other_jobs import OtherJobs
from sluice.spark.observe.window import STAGES_KEPT, BatchLog
from tests.spark.attach.test_attach_pure import PROGRESS, stage

OWN = "run-of-a-query"


def executors(*tasks, cores=1):
    return [
        ExecutorInfo(executor_id=str(number), cores=cores, active_tasks=count, holds_blocks=False, added_s=0.0)
        for number, count in enumerate(tasks)
    ]


class Store:
    """Active jobs by id: (group, tasks); counts the jobs that are asked for."""

    def __init__(self, **_):
        self.jobs = {}
        self.asked = 0

    def active_job_ids(self):
        return list(self.jobs)

    def job(self, job_id):
        self.asked += 1
        group, tasks = self.jobs[job_id]
        return {"jobGroup": group, "numActiveTasks": tasks}


@pytest.mark.parametrize(
    ("jobs", "tasks_here", "found"),
    [
        ({}, (0, 0), (0, 0, 0)),
        ({1: (OWN, 2)}, (1, 1), (0, 0, 0)),
        # a batch job without a group, on both executors
        ({1: (None, 2)}, (1, 1), (1, 2, 2)),
        # one task of others among three busy executors cannot be on more than one
        ({1: (OWN, 2), 2: ("notebook", 1)}, (1, 1, 1), (1, 1, 1)),
        # planning in the driver: no task, but a job
        ({1: ("notebook", 0)}, (0, 0), (1, 0, 0)),
    ],
)
def test_jobs_that_are_no_querys_are_told_by_their_group(jobs, tasks_here, found):
    store = Store()
    store.jobs = jobs
    work = OtherJobs(store).sample({OWN}, executors(*tasks_here))
    assert (work.jobs, work.tasks, work.executors) == found


def test_a_querys_own_job_is_asked_for_once_and_jobs_that_ended_are_forgotten():
    store = Store()
    jobs = OtherJobs(store)
    for number in range(1000):
        store.jobs = {number: (OWN, 4)}
        jobs.sample({OWN}, ())
        jobs.sample({OWN}, ())
    assert store.asked == 1000
    assert len(jobs._groups) == 1


def test_queries_of_two_sessions_with_one_name_stay_apart_and_keep_their_names():
    first = distinct_names({"11111111-a": "counts", "22222222-b": None}, {})
    assert first == {"11111111-a": "counts", "22222222-b": "query-22222222"}
    both = distinct_names({"33333333-c": "counts", "11111111-a": "counts"}, first)
    assert both == {"11111111-a": "counts", "33333333-c": "counts-33333333"}
    assert distinct_names({"33333333-c": "counts"}, both) == {"33333333-c": "counts-33333333"}


class Query:
    name = None

    def __init__(self, number):
        self.query_id, self.run_id = f"query-{number}", f"run-{number}"

    def trigger_interval_s(self):
        return 1.0

    def status(self):
        return {"isTriggerActive": False, "isDataAvailable": False, "message": "Waiting for next trigger"}


class Queries:
    def __init__(self):
        self.now = []
        self.run_ids = frozenset()

    def running(self):
        self.run_ids = frozenset(query.run_id for query in self.now)
        return self.now

    def refresh(self):
        pass


class Probe:
    def __init__(self, _):
        self.store = Store()
        self.kept = set()

    def new_stages(self, run_id):
        return [stage(1)]

    def forget_all_but(self, run_ids):
        self.kept = set(run_ids)


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr(module, "StageProbe", Probe)
    here = SimpleNamespace(present=lambda: executors(1, 1, 1, 0))
    return AttachedEngine(SimpleNamespace(), here, Queries(), (1, 3), threading.Event())


def target_for(engine, seen, count):
    now = Target(parallelism=dict.fromkeys(seen.operators, 3))
    wanted = Recommendation(parallelism=dict.fromkeys(seen.operators, count), reason="test")
    return Guards().apply(wanted, Situation(target=now, graph=engine.graph, observation=seen))


def test_executors_that_other_jobs_use_are_not_released(engine):
    engine._probe.store.jobs = {1: ("notebook", 2)}
    engine.maintain()
    engine._probe.store.jobs = {}
    seen = engine.observe()
    # two tasks on four cores in one of two samples
    assert seen.other_busy == 0.25
    assert target_for(engine, seen, 1).target.parallelism == {NO_QUERY: 2}
    # in a window without such jobs they count no longer
    seen = engine.observe()
    assert seen.other_busy is None
    assert target_for(engine, seen, 1).target.parallelism == {NO_QUERY: 1}


@pytest.mark.parametrize(
    ("jobs", "status", "at_work"),
    [
        ({}, {"isTriggerActive": False, "isDataAvailable": False, "message": "Waiting for next trigger"}, False),
        # an idle source that is looked at
        ({}, {"isTriggerActive": True, "isDataAvailable": False, "message": "Getting offsets from files"}, False),
        # a batch that plans its next stage
        ({}, {"isTriggerActive": True, "isDataAvailable": True, "message": "Processing new data"}, True),
        ({1: ("run-7", 0)}, {"isTriggerActive": False, "isDataAvailable": False, "message": "Stopped"}, True),
    ],
)
def test_a_batch_or_a_job_is_work_though_no_task_runs_now(engine, jobs, status, at_work):
    query = Query(7)
    query.status = lambda: status
    engine._probe.running_tasks = lambda _: 0
    engine._queries.now = [query]
    engine._probe.store.jobs = jobs
    assert engine.observe().at_work is at_work


def test_what_other_jobs_use_lifts_nothing_above_the_maximum(engine):
    engine._probe.store.jobs = {1: ("notebook", 100)}
    engine._executors.present = lambda: executors(1, 1, 1, 1, 1, 1)
    seen = engine.observe()
    assert target_for(engine, seen, 1).target.parallelism == {NO_QUERY: 3}


def test_queries_that_restart_for_ever_leave_nothing_behind(engine):
    for number in range(300):
        engine._queries.now = [Query(number)]
        for batch_id in range(3):
            engine._on_progress({**PROGRESS, "runId": f"run-{number}", "batchId": batch_id})
        engine.observe()
    engine._queries.now = []
    engine.observe()
    kept = (engine._observers, engine._names, engine._useful, engine._batches, engine._probe.kept)
    assert [len(one) for one in kept] == [0, 0, 0, 0, 0]


def test_what_nobody_observes_is_bounded(engine):
    for number in range(3 * BATCHES_KEPT):
        engine._on_progress({**PROGRESS, "batchId": number})
    assert [batch.batch_id for batch in engine._batches["r"]][-1] == 3 * BATCHES_KEPT - 1
    assert len(engine._batches["r"]) == BATCHES_KEPT
    for number in range(3 * CHANGES_KEPT):
        engine._note_cores(number % 5)
    assert len(engine._cores) == CHANGES_KEPT + 1
    log = BatchLog(0.0)
    for number in range(3 * STAGES_KEPT // 100):
        log.add_stages([stage(number)] * 100)
    assert len(log._stages) == STAGES_KEPT


def test_cores_that_stay_are_one_sample(engine):
    for _ in range(100):
        engine.maintain()
    assert [cores for _, cores in engine._cores] == [4]


class StepTime:
    """Time that passes by sleeping."""

    def __init__(self):
        self.s = 0.0

    def now_s(self):
        return self.s

    def sleep_s(self, duration_s):
        self.s += duration_s


def test_a_long_run_keeps_the_memory_it_had(monkeypatch):
    """A thousand cycles of ten batches; the query restarts every fifty."""
    clock = StepTime()
    monkeypatch.setattr(module, "StageProbe", Probe)
    monkeypatch.setattr(module.time, "time", lambda: 1.8e9 + clock.s)
    here = SimpleNamespace(present=lambda: executors(1, 1), reconcile=lambda *_, **__: None)
    engine = AttachedEngine(SimpleNamespace(), here, Queries(), (1, 3), threading.Event())
    engine.clock = clock
    engine._queries.listen, engine._queries.close = lambda _: None, lambda: None
    held = []

    def work(report):
        number = report.cycle.cycle
        engine._queries.now = [Query(number // 50)]
        for batch in range(10):
            stamp = datetime.fromtimestamp(1.8e9 + clock.s + batch, UTC).isoformat()
            progress = {**PROGRESS, "runId": f"run-{number // 50}", "batchId": 10 * number + batch, "timestamp": stamp}
            engine._on_progress(progress)
        if number in (300, 999):
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])

    loop = Loop(engine=engine, decider=Decider(policies.create("ds2")), journal=MemoryJournal(100))
    tracemalloc.start()
    try:
        loop.run(Target(parallelism={NO_QUERY: 1}), duration_s=10_000.0, interval_s=10.0, on_report=work)
    finally:
        tracemalloc.stop()
    before, after = held
    assert after - before < 100_000
    seen = [one for report in loop.journal.reports() for one in report.cycle.observation.operators.values()]
    assert any(one.input_rate for one in seen)
