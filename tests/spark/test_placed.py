"""Placement on Spark: which executor every partition goes to, without Spark; and a run on the shared cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sluice import Pipeline, Topic
from sluice.errors import BadInputError
from sluice.journal.file import read_journal, read_runs
from sluice.journal.records import Cycle
from sluice.model import Observation, OperatorMetrics, Placement, Worker
from sluice.spark.cluster import lifecycle
from sluice.spark.internals import executor_calls
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.folders import QueryState, SavedState
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.pipeline.runtime import Runtime
from sluice.spark.pipeline.worker_side import WorkerSide
from sluice.spark.placed.cluster import executors_of
from sluice.spark.placed.elastic import EMPTY_S, ElasticExecutors, without_slots
from sluice.spark.placed.placing import Moves, PlacedQuery, Placing
from sluice.spark.placed.process_cpu import ExecutorCpu
from sluice.spark.placed.stores import stores_of
from sluice.spark.placed.tasks import TaskAccount
from sluice.spark.placed.workers import Executor, cluster_of, workers_of


def placed(**tasks: dict[str, int]) -> Placement:
    return Placement(tasks=tasks)


def test_a_worker_has_the_name_of_its_host_whatever_its_executors_id():
    first = Executor(executor_id="0", host="127.0.0.11", cores=4)
    again = Executor(executor_id="12", host="127.0.0.11", cores=4)
    assert list(workers_of([first])) == list(workers_of([again])) == ["127.0.0.11"]
    assert again.place == "executor_127.0.0.11_12"


def test_executors_that_share_a_host_are_told_apart_by_age():
    found = workers_of(Executor(executor_id=one, host="h", cores=2) for one in ("10", "2"))
    assert {name: one.executor_id for name, one in found.items()} == {"h": "2", "h#2": "10"}
    assert cluster_of(found, {"cpu": 0.5}).workers[0] == Worker(name="h", slots=2, cpu=0.5)


def test_an_executor_that_has_only_just_registered_is_no_worker_yet():
    class Store:
        def executors(self):
            common = {"isActive": True, "totalCores": 4}
            return [{"id": "0", "hostPort": "h:7", **common}, {"id": "1", "hostPort": "", **common}]

    assert [one.executor_id for one in executors_of(Store())] == ["0"]


def test_the_stores_of_a_join_are_read_from_its_checkpoint(tmp_path):
    record = tmp_path / "state" / "0" / "_metadata" / "metadata"
    record.parent.mkdir(parents=True)
    stores = [{"storeName": "left-keyToNumValues", "numPartitions": 8}, {"storeName": "right-keyToNumValues"}]
    record.write_text("v1\n" + json.dumps({"operatorInfo": {"operatorId": 0}, "stateStoreInfo": stores}))
    assert stores_of(tmp_path) == {0: ("left-keyToNumValues", "right-keyToNumValues")}
    assert stores_of(tmp_path / "none") == {}


def test_tasks_are_counted_by_worker_and_compared_with_what_was_planned():
    account = TaskAccount()
    common = {"run_id": "r", "batch_id": 1, "stage": 1, "run_ms": 500, "cpu_ns": 10**8, "remote_bytes": 10}
    tasks = [
        {**common, "kind": "source", "partition": 0, "planned": "1", "executor": "1"},
        {**common, "kind": "source", "partition": 1, "planned": "2", "executor": "1"},
        {**common, "kind": "state", "partition": 0, "planned": None, "executor": "2"},
        {**common, "kind": "other", "partition": 0, "planned": None, "executor": "2"},
        {**common, "kind": "source", "partition": 0, "planned": "1", "executor": "unknown"},
    ]
    account.add(tasks, {"r": "count"}.get, {"1": "a", "2": "b"}.get)
    assert (account.placed, account.followed) == (3, 1)
    assert account.cpu_s == {"count": pytest.approx(0.4)}
    assert account.state_s == {"count": {0: 0.1}}
    found = account.metrics((Worker(name="a", slots=2), Worker(name="b", slots=2), Worker(name="c", slots=2)), 1.0)
    assert found["a"].source_tasks == {"count": 2}
    assert found["b"].state_tasks == {"count": 1}
    assert (found["a"].busy, found["b"].task_cpu, found["b"].net_rate, found["c"].busy) == (0.5, 0.2, 20, 0.0)


def test_the_cpu_of_an_executor_is_that_of_its_whole_process_tree(tmp_path):
    def process(number: int, parent: int, ticks: int, *words: str) -> None:
        folder = tmp_path / str(number)
        folder.mkdir(exist_ok=True)
        folder.joinpath("cmdline").write_bytes("\0".join(words).encode())
        folder.joinpath("stat").write_text(f"{number} (java) S {parent} " + "0 " * 9 + f"{ticks} 0 0 0")

    executor = (
        "java",
        "org.apache.spark.executor.CoarseGrainedExecutorBackend",
        "--executor-id",
        "3",
        "--app-id",
        "app-1",
    )
    process(10, 1, 100, *executor)
    process(11, 10, 100, "python")
    process(12, 1, 500, *executor[:-1], "app-2")
    process(9, 10, 0, *executor)
    cpu = ExecutorCpu("app-1", tmp_path)
    assert cpu.cores(1.0) == {}
    process(11, 10, 300, "python")
    assert cpu.cores(2.0) == {"3": 200 / os.sysconf("SC_CLK_TCK") / 2}


def workers_named(**executor_ids: str) -> dict[str, Executor]:
    return workers_of(Executor(executor_id=one, host=host, cores=4) for host, one in executor_ids.items())


def test_a_placement_is_kept_while_executors_are_replaced_lost_and_join(tmp_path):
    query = PlacedQuery("count", tmp_path / "places", tmp_path / "checkpoint", stateful=True)
    placing = Placing({"count": query})

    def apply(workers: dict[str, Executor], wanted: Placement) -> int:
        return placing.apply(wanted, {"count": 2}, {"count": 4}, workers).total

    def places() -> list[str]:
        return json.loads(query.plan.read_text())["places"]

    def state_places() -> list[str]:
        return json.loads(query.plan.read_text())["state"]["places"]

    wanted = placed(a={"count": 1}, b={"count": 1})
    apply(workers_named(a="0", b="1"), wanted)
    assert (places(), placing.state["count"]) == (["executor_a_0", "executor_b_1"], ["a", "a", "b", "b"])
    assert apply(workers_named(a="0", b="2"), wanted) == 0
    assert places() == ["executor_a_0", "executor_b_2"]
    assert state_places() == ["executor_a_0"] * 2 + ["executor_b_2"] * 2
    assert apply(workers_named(a="0", c="3"), wanted) == 2
    assert (places(), placing.state["count"]) == (["executor_a_0", "executor_c_3"], ["a", "a", "c", "c"])
    assert apply(workers_named(a="0", b="4", c="3"), wanted) == 2
    assert placing.state["count"] == ["a", "a", "b", "b"]

    again = Placing({"count": query})
    again.restore(placing.state, wanted)
    assert again.apply(wanted, {"count": 2}, {"count": 4}, workers_named(a="9", b="8", c="7")).total == 0


def test_skew_moves_state_when_the_plan_has_a_heavy_task_and_not_before(tmp_path):
    query = PlacedQuery("count", tmp_path / "places", tmp_path / "checkpoint", stateful=True)
    placing = Placing({"count": query})
    workers = workers_named(a="0", b="1")

    def apply(wanted: Placement) -> list[str]:
        placing.apply(wanted, {"count": 3}, {"count": 4}, workers)
        return placing.state["count"]

    even = placed(a={"count": 1}, b={"count": 2})
    first = apply(even)
    assert placing.state_shares == {}
    hot = first.index("b")
    taken_s = {partition: 6.0 if partition == hot else 1.0 for partition in range(4)}
    placing.weigh({"count": taken_s}, {"count": 10.0})
    assert placing.state_shares["count"][hot] == 0.6
    assert apply(even) == first
    skewed = Placement(tasks=even.tasks, heavy={"a": {"count": (0.63,)}})
    assert apply(skewed) == ["a" if partition == hot else "b" for partition in range(4)]
    placing.weigh({"count": {0: 1.0}}, {"count": 2.0})
    assert apply(skewed.model_copy(update={"heavy": {"a": {"count": (0.6,)}}})).count("a") == 1

    again = Placing({"count": query})
    again.restore(placing.state, skewed)
    assert again.apply(skewed, {"count": 3}, {"count": 4}, workers).total == 0
    assert again.apply(skewed, {"count": 3}, {"count": 4}, workers_named(b="1", c="2")).total > 0
    returned = Placing({"count": query})
    returned.restore({"count": ["b"] * 4}, skewed)
    assert returned.apply(skewed, {"count": 3}, {"count": 4}, workers).total > 0

    everything = Placement(tasks={"a": {"count": 1}}, heavy={"a": {"count": (0.9,)}})
    placing.apply(everything, {"count": 1}, {"count": 4}, workers)
    assert placing.state["count"] == ["a"] * 4


def test_before_the_first_batch_every_stateful_operator_of_a_query_is_placed(tmp_path):
    query = PlacedQuery("rank", tmp_path / "places", tmp_path / "checkpoint", stateful=True)
    Placing({query.name: query}).apply(
        placed(a={query.name: 1}), {query.name: 1}, {query.name: 2}, workers_named(a="0")
    )
    stores = json.loads(query.plan.read_text())["state"]["stores"]
    assert {"default", "left-keyToNumValues"} <= set(stores["0"]) == set(stores["1"])


def test_executors_are_requested_for_workers_to_come_and_released_where_none_is_needed(monkeypatch):
    calls: list[object] = []
    monkeypatch.setattr(executor_calls, "request_executors", lambda _, total: calls.append(total))
    monkeypatch.setattr(executor_calls, "kill_idle_executors", lambda _, ids: calls.append(ids) or ids)
    times_s = iter([0.0, 1.0, 2.0, 3.0, 3.0 + EMPTY_S])
    elastic = ElasticExecutors(None, now_s=lambda: next(times_s))
    one = workers_of([Executor(executor_id="0", host="a", cores=4)])
    two = workers_of([Executor(executor_id=str(n), host=host, cores=4) for n, host in enumerate("ab")])
    growing = placed(a={"map": 4}, **{"expected-1": {"map": 2}})
    assert elastic.reconcile(growing, one) == ("requested 2 executors, 1 are there",)
    assert without_slots(growing, 2) == {"map": 2}
    assert elastic.reconcile(growing, two) == ()
    shrunk = placed(a={"map": 1}, b={})
    assert elastic.reconcile(shrunk, two) == elastic.reconcile(shrunk, two) == ()
    assert elastic.reconcile(shrunk, two) == ("released the executors of b: no instance there",)
    assert calls == [2, 1, ["1"]]


def test_nothing_is_planned_on_an_executor_that_was_released_though_spark_still_lists_it(monkeypatch):
    monkeypatch.setattr(executor_calls, "request_executors", lambda *_: None)
    monkeypatch.setattr(executor_calls, "kill_idle_executors", lambda _, ids: ids)
    times_s = iter([0.0, EMPTY_S])
    summary = {"isActive": True, "totalCores": 4}
    side = WorkerSide.__new__(WorkerSide)
    side._elastic = ElasticExecutors(None, now_s=lambda: next(times_s))
    side._store = SimpleNamespace(
        executors=lambda: [{"id": str(n), "hostPort": f"{host}:7", **summary} for n, host in enumerate("ab")]
    )
    side.workers, side._names, side._capacity = {}, {}, {}
    side.refresh()
    wanted = placed(a={"map": 1}, b={})
    assert side.keep_executors(wanted) == ()
    assert side.keep_executors(wanted) == ("released the executors of b: no instance there",)
    assert [worker.name for worker in side.cluster.workers] == ["a"]
    assert (side.refresh(), list(side.workers)) == ((), ["a"])


def test_a_folder_of_another_pipeline_is_refused_before_its_placement_is_read(tmp_path):
    compiled = SimpleNamespace(name="mine", queries=[SimpleNamespace(name="count", stateful=True)])
    runtime = Runtime(Pipeline("mine"), compiled, None, tmp_path, QuerySettings(), places=True)
    saved = {"queries": {"rank": QueryState(parallelism=1, state_partitions=1)}, "state_workers": {"rank": ["a"]}}
    runtime.folders.save(SavedState(pipeline="other", placement=placed(a={"rank": 1}), **saved))
    with pytest.raises(BadInputError, match="holds pipeline 'other'"):
        runtime.saved_placement()


def test_state_that_moves_between_two_decisions_is_an_event():
    state = SimpleNamespace(state_partitions=4)
    side = SimpleNamespace(
        refresh=lambda: ("worker b is gone",),
        lost_some=False,
        sample=lambda: None,
        place=lambda wanted: Moves({"count": 2}),
        keep_executors=lambda wanted: (),
    )
    engine = SparkEngine.__new__(SparkEngine)
    engine.worker_side, engine._wanted, engine._feed = side, None, None
    engine.runtime = SimpleNamespace(
        queries={"count": SimpleNamespace(state=state)}, restart_failed=list, trim_output=lambda: None
    )
    engine.ledgers = SimpleNamespace(sample=lambda: None, state_bytes={"count": 8e6})
    assert engine.maintain() == (
        "worker b is gone",
        "placement moves 2 of 4 state partitions of count (4.0 MB)",
    )


def test_an_observation_says_what_each_state_partition_takes(monkeypatch):
    seen = Observation(
        time_s=1,
        interval_s=1,
        operators={"map": OperatorMetrics(parallelism=1), "count": OperatorMetrics(parallelism=2)},
    )
    monkeypatch.setattr("sluice.spark.pipeline.engine.make_observation", lambda windows, **_: seen)
    engine = SparkEngine.__new__(SparkEngine)
    engine.clock, engine._observed_s = SimpleNamespace(now_s=lambda: 1.0), 0.0
    engine.ledgers = SimpleNamespace(sample=lambda: None, close_windows=lambda _: ({}, []))
    engine._graph = SimpleNamespace(topology=SimpleNamespace(edges=()))
    engine.worker_side = SimpleNamespace(close_window=lambda *_: ({}, None))
    engine.runtime = SimpleNamespace(placing=SimpleNamespace(state_shares={"count": (0.6, 0.1)}))
    operators = engine.observe().operators
    assert (operators["count"].state_shares, operators["map"].state_shares) == ((0.6, 0.1), None)


PIPELINE = """
import numpy as np
import pyarrow as pa
from sluice import Pipeline

def numbers(first, count, time_s, seed):
    return pa.table({"id": np.arange(first, first + count)})

counting = Pipeline("counting")
counting.source("numbers", "id BIGINT", generate=numbers)

@counting.operator
def even(numbers):
    return numbers.where("id % 2 = 0")

@counting.operator(output_mode="update", state_partitions=8, min_parallelism=3)
def digits(even):
    return even.groupBy((even.id % 10).alias("digit")).count()

counting.sink("out", digits)
"""


def workers_with_state(out: Path) -> set[str]:
    """Where tasks with state were seen to run until now."""
    journal = out / "journal.jsonl"
    cycles = [one for one in read_journal(journal) if isinstance(one, Cycle)] if journal.exists() else []
    return {worker for cycle in cycles for worker, seen in cycle.observation.workers.items() if seen.state_tasks}


@pytest.mark.spark
def test_tasks_run_on_the_workers_of_the_plan_and_nothing_is_lost(cluster, tmp_path):
    """In a process of its own: the session of the other tests has another master."""
    state = lifecycle.read_state(cluster)
    (tmp_path / "jobs.py").write_text(PIPELINE)
    command = [sys.executable, "-c", "from sluice.cli import main; main()", "run", f"{tmp_path / 'jobs.py'}:counting"]
    command += ["--engine", "spark"]
    command += ["--master", state.master_url, "--placement", "evenly", "--policy", "static", "--workload", "constant"]
    command += ["--root", str(tmp_path / "work"), "--out", str(tmp_path / "out"), "--json", "--duration", "300"]
    command += ["--interval", "4", "--spark-set", "keep_output=true", "--pipeline-set", "peak_rate=500"]
    with open(tmp_path / "summary.json", "wb") as summary_file, open(tmp_path / "errors", "wb") as errors:
        run = subprocess.Popen(command, stdout=summary_file, stderr=errors)
    # of four instances, counted out to two workers, three keep state: both have some, and their tasks are followed
    both = set(state.worker_hosts.values())
    try:
        while run.poll() is None and workers_with_state(tmp_path / "out") != both:
            time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        assert run.wait() == 0, (tmp_path / "errors").read_text()
    finally:
        run.kill()
    assert workers_with_state(tmp_path / "out") == both
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["lost_records"], summary["duplicated_records"]) == (0, 0)
    assert summary["placement_followed"] > 0.9
    (recorded,) = read_runs(tmp_path / "out")
    assert all(cycle.target.placement for cycle in recorded.cycles)
    assert set(recorded.cycles[-1].observation.workers) == both
    done = Topic.open(tmp_path / "work" / "topics" / "numbers").consumers()["even"]
    out = Topic.open(tmp_path / "work" / "topics" / "out")
    counts: dict[int, int] = {}
    for batch in out.read(0, out.end_offset()):
        counts |= dict(zip(batch["digit"].to_pylist(), batch["count"].to_pylist(), strict=True))
    through = Topic.open(tmp_path / "work" / "topics" / "even").consumers()["digits"]
    assert sum(counts.values()) == through <= done
    assert "Where tasks ran" in (tmp_path / "out" / "report.html").read_text()
