"""A provider whose nodes are only noted, threads that are none, and an engine below that only does as it is told."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future

from sluice.errors import SluiceError
from sluice.journal.records import RecordCount
from sluice.model import Graph, NodeType, Observation, Operator, OperatorMetrics, Reconciliation, Target
from sluice.spark.nodes.engine import SizedEngine
from sluice.spark.nodes.pool import NodePool
from sluice.spark.nodes.provider import WorkerNode, type_named
from sluice.spark.placed import workers
from sluice.spark.placed.speeds import TaskSpeeds

SMALL = NodeType(name="small", cpu_cores=0.5, memory_mb=512, price_per_hour=0.02, start_s=10)
LARGE = NodeType(name="large", cpu_cores=2, memory_mb=1024, price_per_hour=0.06, start_s=20)
TYPES = (SMALL, LARGE)


class AtOnce(Executor):
    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Later(Executor):
    """Work that is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future, object]] = []

    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def run(self) -> None:
        waiting, self.waiting = self.waiting, []
        for future, work in waiting:
            future.set_result(work())


class FakeNodes:
    def __init__(self, types: tuple[NodeType, ...] = TYPES) -> None:
        self._types = types
        self.nodes: dict[str, WorkerNode] = {}
        self.full: set[str] = set()
        """Types that cannot be started now."""
        self.count = 0
        self.stopped: list[str] = []

    def types(self):
        return self._types

    def start(self, type_name, count):
        type_named(self._types, type_name)
        if type_name in self.full:
            raise SluiceError(f"no room for a {type_name!r}")
        started = []
        for _ in range(count):
            self.count += 1
            node = WorkerNode(name=f"{type_name}-{self.count}", type=type_name, host=f"10.0.0.{self.count}")
            self.nodes[node.name] = node
            started.append(node)
        return started

    def stop(self, node):
        self.stopped.append(node.name)
        self.nodes.pop(node.name, None)

    def list(self):
        return list(self.nodes.values())

    @property
    def hosts(self) -> set[str]:
        return {node.host for node in self.nodes.values()}


class FakeClock:
    def __init__(self) -> None:
        self.time_s = 0.0
        self.interrupted = threading.Event()

    def now_s(self):
        return self.time_s

    def sleep_s(self, duration_s):
        self.time_s += duration_s


class FakePlacing:
    worths: dict = {}  # noqa: RUF012


class FakeWorkers:
    """The executors of all nodes whose `start_s` is over."""

    def __init__(self, provider, clock) -> None:
        self.provider, self.clock = provider, clock
        self.started: dict[str, float] = {}
        self.speeds = TaskSpeeds()
        self.dead: set[str] = set()

    @property
    def workers(self):
        there = {}
        for number, node in enumerate(self.provider.list()):
            start_s = next(one.start_s for one in self.provider.types() if one.name == node.type)
            if self.clock.time_s - self.started.setdefault(node.name, self.clock.time_s) >= start_s:
                slots = next(one.slots for one in self.provider.types() if one.name == node.type)
                if node.host not in self.dead:
                    there[node.host] = workers.Executor(
                        executor_id=f"e{number}{node.name}", host=node.host, cores=slots
                    )
        return there

    def active_tasks(self):
        return {}


class FakeInner:
    """The engine below: does what it is told, and reads at the speed of the nodes."""

    tick_s = 1.0
    spark = None
    guarantees: dict = {}  # noqa: RUF012

    def __init__(self, provider) -> None:
        self.clock = FakeClock()
        self.worker_side = FakeWorkers(provider, self.clock)
        self.runtime = type("Runtime", (), {"placing": FakePlacing()})()
        self.graph = Graph(operators=(Operator(name="map"), Operator(name="count", min_parallelism=2)))
        self.target: Target | None = None
        self.history: list[Target] = []
        self.stopped = False

    def start(self, target):
        self.target = target
        return target

    def reconcile(self, target):
        if target != self.target:
            self.history.append(target)
        self.target = target
        return Reconciliation(requested=target.parallelism, observed=target.parallelism)

    def maintain(self):
        return ()

    def observe(self):
        tasks = [
            {"run_id": name, "executor": executor.executor_id, "read_records": 1000 * cores, "run_ms": 1000}
            for name in self.graph.names
            for host, counts in self.target.placement.tasks.items()
            for executor in [self.worker_side.workers.get(host)]
            if executor is not None and counts.get(name)
            for cores in [1 if executor.cores > 1 else 0.5]
        ]
        self.worker_side.speeds.add(tasks, lambda run: run)
        self.worker_side.speeds.close_window()
        operators = {
            name: OperatorMetrics(parallelism=count, busy=0.5, true_input_rate=2500.0)
            for name, count in self.target.parallelism.items()
        }
        return Observation(time_s=self.clock.time_s + 1, interval_s=1.0, operators=operators)

    def stop(self):
        self.stopped = True
        return RecordCount(arrived=0, processed=0, waiting=0, lost=0, duplicated=0)


class World:
    def __init__(self, root) -> None:
        self.provider = FakeNodes()
        self.inner = FakeInner(self.provider)
        self.pool = NodePool(self.provider, now_s=self.inner.clock.now_s, executor=AtOnce())
        self.root = root
        self.engine = SizedEngine(self.inner, self.pool, default_type="small", root=root)
        self.target = Target(parallelism={"map": 1, "count": 1})

    def started(self):
        self.pool.begin({"small": 2})
        _ = self.inner.worker_side.workers
        self.inner.clock.sleep_s(SMALL.start_s)
        self.engine.start(self.target)
        return self

    def passing(self, seconds, target=None):
        """Ticks as the loop makes them; the last reconciliation and all that was said."""
        self.target = target or self.target
        said: list[str] = []
        done = None
        for _ in range(round(seconds)):
            self.inner.clock.sleep_s(1.0)
            said += self.engine.maintain()
            done = self.engine.reconcile(self.target)
        return done, said

    def tasks(self, operator):
        """Type of node -> tasks of the operator there."""
        types = {node.host: node.type for node in self.provider.nodes.values()}
        found: dict[str, int] = {}
        for host, counts in self.inner.target.placement.tasks.items():
            if counts.get(operator):
                found[types[host]] = found.get(types[host], 0) + counts[operator]
        return found
