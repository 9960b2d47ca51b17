"""Nodes that join a real master: instances of two sizes, and one that drains and leaves."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sluice.spark.cluster import lifecycle

PROGRAM = """
import json, sys, threading, time
from pathlib import Path

import numpy as np
import pyarrow as pa

from sluice import Pipeline
from sluice.control.engine import wait
from sluice.model import NodeType, Target
from sluice.spark.internals.status import StatusStore
from sluice.spark.nodes.engine import SizedEngine
from sluice.spark.nodes.local import LocalNodes
from sluice.spark.nodes.pool import NodePool
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.topic.interface import open_log

master, root = sys.argv[1], Path(sys.argv[2])
types = [
    NodeType(name="small", cpu_cores=0.5, memory_mb=600, slots=1),
    NodeType(name="large", cpu_cores=1.0, memory_mb=900, slots=2),
]


class Feed:
    def start(self, topics):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(open_log(topics["numbers"]),))
        self.thread.start()

    def run(self, log):
        number = 0
        while not self.over.wait(0.25):
            table = pa.table({"id": np.arange(number * 200, (number + 1) * 200)}).cast(log.schema)
            log.append(table, producer="feed", batch_id=number)
            number += 1

    def check(self): ...

    def stop(self):
        self.over.set()
        self.thread.join()


job = Pipeline("sized")
job.source("numbers", "id BIGINT")


@job.operator(output_mode="update", state_partitions=4)
def digits(numbers):
    return numbers.groupBy((numbers.id % 10).alias("digit")).count()


job.sink("out", digits)
nodes = LocalNodes(master, types, root / "nodes", cores=4.0, limits=False)
pool = NodePool(nodes)
pool.begin({"small": 1})
inner = SparkEngine(job, root, master=master, places=True, grows=True, feed=Feed(),
                    session_settings={"spark.executor.memory": "600m"}, settings=QuerySettings(trigger_s=0.5))
engine = SizedEngine(inner, pool, default_type="small", root=root)
events = []


def until(target, condition):
    deadline_s = time.monotonic() + 240
    while not condition(engine.reconcile(target)):
        assert time.monotonic() < deadline_s, events
        engine.clock.sleep_s(0.5)
        events.extend(engine.maintain())


def target(**mix):
    return Target(parallelism={"digits": sum(mix.values())}, sizes={"digits": mix})


def read_by(*sizes):
    return set(engine.observe().operators["digits"].size_rates or ()) >= set(sizes)


try:
    engine.start(target(small=1))
    until(target(small=1), lambda done: done.observed == {"digits": 1})
    until(target(small=1, large=1), lambda done: done.sizes == {"digits": {"small": 1, "large": 1}})
    tasks = inner.runtime.parallelism
    memory = {one["hostPort"].rpartition(":")[0]: one["maxMemory"] for one in StatusStore(inner.spark).executors()}
    heaps = {node.type: memory[node.host] for node in pool.ready.values()}
    until(target(small=1, large=1), lambda _: read_by("small", "large"))
    until(target(large=1), lambda done: len(nodes.list()) == 1)
    until(target(large=1), lambda _: read_by("large"))
    seen = engine.observe()
finally:
    counted = engine.stop()
    left = len(nodes.list())
    nodes.close()
out = open_log(str(root / "topics" / "out"))
last = {}
for batch in out.read(0, out.end_offset()):
    last |= dict(zip(batch["digit"].to_pylist(), batch["count"].to_pylist(), strict=True))
print(json.dumps({
    "lost": counted.lost, "twice": counted.duplicated, "processed": counted.processed, "tasks": tasks,
    "heaps": heaps, "counted": sum(last.values()), "left": left, "events": events,
    "start_s": seen.node_types["large"].start_s, "followed": seen.placement.model_dump(),
}))
"""


@pytest.mark.spark
def test_instances_of_two_sizes_are_nodes_that_come_and_drain(cluster, tmp_path):
    """In a process of its own: the session of the other tests has another master."""
    state = lifecycle.read_state(cluster)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), state.master_url, str(tmp_path / "work")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert (found["lost"], found["twice"]) == (0, 0)
    assert found["counted"] == found["processed"] > 0
    assert found["tasks"] == {"digits": 3}, "a slot of the small node and two of the large one"
    assert found["heaps"]["large"] > 1.5 * found["heaps"]["small"], (
        "the executor of the larger node has the larger heap"
    )
    assert found["left"] == 0
    assert any(event.startswith("node large-2 joined after") for event in found["events"])
    assert any(event == "node small-1 drains: no instance is on it" for event in found["events"])
    assert found["start_s"] > 0
