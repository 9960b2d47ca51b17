"""The simulator as an engine: time passes only in `clock.sleep_s`, and the same seed gives the same run."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sluice.control.engine import RecordCount
from sluice.engines.simulator.job import RateCurve, SimulatedJob
from sluice.engines.simulator.kernel import advance
from sluice.engines.simulator.state import (
    OUTSIDE,
    UNBOUNDED,
    Floats,
    Ints,
    make_shape,
    make_state,
    make_window,
)
from sluice.errors import BadInputError, unknown_name
from sluice.model import Applied, Graph, Observation, OperatorMetrics, Placement, Plan

ARRIVAL_CHUNK_TICKS = 4096


class SimulatedClock:
    """Engine time; sleeping is what runs the simulation."""

    def __init__(self, engine: SimulatedEngine) -> None:
        self._engine = engine

    def now_s(self) -> float:
        return self._engine.tick * self._engine.job.settings.tick_s

    def sleep_s(self, duration_s: float) -> None:
        self._engine.run_ticks(max(1, round(duration_s / self._engine.job.settings.tick_s)))


class SimulatedEngine:
    """Runs a `SimulatedJob` whose sources' topics fill as the given curves say."""

    def __init__(self, job: SimulatedJob, arrivals: Mapping[str, RateCurve], seed: int = 0) -> None:
        self.job = job
        self.tick = 0
        self._graph = job.graph
        topology = self._graph.topology
        missing = [source for source in topology.sources if source not in arrivals]
        if missing:
            raise BadInputError(f"no arrival rate for source {missing[0]!r}; given: {', '.join(arrivals) or 'none'}")
        self._names = topology.names
        self._curves = [arrivals[source] for source in topology.sources]
        self._shape = make_shape(job)
        workers = job.settings.cluster.workers if job.settings.cluster else ()
        self._workers = {worker.name: number for number, worker in enumerate(workers)}
        self.state = make_state(self._shape, len(self._names), len(self._curves), len(workers))
        self._window = make_window(len(self._names), self._shape.target.size)
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._arrived: Ints = np.zeros((len(self._curves), 1), dtype=np.int64)
        self._expected: Floats = np.zeros(len(self._curves))
        self._latencies: list[Floats] = []
        self._observed_tick = 0
        self._observed_lag = np.zeros(len(self._names), dtype=np.int64)
        self._plan: Plan | None = None
        self._downtime_s = 0.0
        self.clock = SimulatedClock(self)
        self._index = {name: number for number, name in enumerate(self._names)}
        self._sources = {name: number for number, name in enumerate(topology.sources)}
        self._out_edges = {
            name: [int(edge) for edge in self._shape.out_edges[self._shape.out_start[i] : self._shape.out_start[i + 1]]]
            for i, name in enumerate(self._names)
        }
        self._in_edges = {
            name: [int(edge) for edge in self._shape.in_edges[self._shape.in_start[i] : self._shape.in_start[i + 1]]]
            for i, name in enumerate(self._names)
        }
        shares = [edge.share for edge in job.edges] + [1.0] * (self._shape.target.size - len(job.edges))
        self._out_share = {name: sum(shares[edge] for edge in edges) for name, edges in self._out_edges.items()}

    @property
    def graph(self) -> Graph:
        return self._graph

    def start(self, plan: Plan) -> None:
        self._plan = plan
        for name in self._names:
            self._resize(name, plan, delay_s=0.0)
        self._place(plan.placement)
        self.state.capacity[:] = self.state.next_capacity

    def run_ticks(self, ticks: int) -> None:
        settings = self.job.settings
        self._extend_arrivals(self.tick + ticks)
        normal = self._random.standard_normal((ticks, len(self._names)))
        # the mean of a lognormal is exp(sigma^2 / 2): taken out, so that noise does not change the mean speed
        noise = np.exp(settings.noise * normal - settings.noise**2 / 2)
        latency_s = np.zeros((ticks, len(self._curves)))
        advance(self.tick, settings.tick_s, self._shape, self.state, self._window, self._arrived, noise, latency_s)
        self._latencies.append(latency_s)
        self.tick += ticks

    def observe(self) -> Observation:
        if self._plan is None:
            raise RuntimeError("observe before start")
        ticks = self.tick - self._observed_tick
        if ticks == 0:
            raise RuntimeError("no time has passed since the last observation")
        interval_s = ticks * self.job.settings.tick_s
        latency_s = np.concatenate(self._latencies)
        lag = self.lag_records()
        operators = {
            name: self._metrics(name, self._plan.parallelism[name], interval_s, ticks, latency_s, lag)
            for name in self._names
        }
        for sums in self._window:
            sums.fill(0)
        self._latencies.clear()
        self._observed_tick = self.tick
        self._observed_lag = lag
        return Observation(
            time_s=self.clock.now_s(),
            interval_s=interval_s,
            operators=operators,
            edges=self._graph.topology.edges,
            latency_samples_s=tuple(latency_s.max(axis=1).round(6).tolist()),
        )

    def apply(self, plan: Plan) -> Applied:
        old = self._plan
        if old is None:
            raise RuntimeError("apply before start")
        changed = {
            name: (old.parallelism[name], plan.parallelism[name])
            for name in self._names
            if old.parallelism[name] != plan.parallelism[name] or old.sizes.get(name) != plan.sizes.get(name)
        }
        settings = self.job.settings
        stopped = set(self._names) if settings.rescale == "job" and changed else set(changed)
        moved_bytes = sum(float(self.state.state_bytes[self._index[name]]) for name in stopped)
        downtime_s = settings.downtime_s + moved_bytes / settings.state_bandwidth_bytes_per_s if changed else 0.0
        up_tick = self.tick + math.ceil(downtime_s / settings.tick_s)
        for name in stopped:
            self.state.down_until_tick[self._index[name]] = up_tick
        for name, (before, after) in changed.items():
            self._resize(name, plan, delay_s=downtime_s + (settings.instance_start_s if after > before else 0.0))
        self._place(plan.placement)
        self._plan = plan
        self._downtime_s += downtime_s
        return Applied(changed=changed, downtime_s=downtime_s)

    def stop(self) -> RecordCount:
        arrived = int(self._arrived[:, self.tick].sum())
        read = int(self.state.read.sum())
        return RecordCount(
            arrived=arrived,
            processed=read,
            waiting=arrived - read,
            lost=max(0, self.missing_records()),
            duplicated=max(0, -self.missing_records()),
            downtime_s=self._downtime_s,
        )

    def missing_records(self) -> int:
        """Records emitted into an edge that its consumer neither took nor has waiting; always 0."""
        missing = 0
        for name in self._names:
            edges = self._in_edges[name]
            if edges:
                came = int(self.state.emitted[edges].sum())
                missing += came - int(self.state.consumed[self._index[name]]) - int(self.state.queued[edges].sum())
        return missing

    def arrived_records(self) -> dict[str, int]:
        return {name: int(self._arrived[number, self.tick]) for name, number in self._sources.items()}

    def lag_records(self) -> Ints:
        """Per operator: what waits in its topic (sources) or at its inputs."""
        lag = np.zeros(len(self._names), dtype=np.int64)
        for i, name in enumerate(self._names):
            source = self._sources.get(name)
            if source is None:
                lag[i] = self.state.queued[self._in_edges[name]].sum()
            else:
                lag[i] = self._arrived[source, self.tick] - self.state.read[source]
        return lag

    def _metrics(
        self, name: str, parallelism: int, interval_s: float, ticks: int, latency_s: Floats, lag: Ints
    ) -> OperatorMetrics:
        i = self._index[name]
        settings = self.job.settings
        busy_truth = float(self._window.busy[i]) / ticks
        busy = busy_truth * settings.busy_ceiling
        backpressure = min(float(self._window.backpressure[i]) / ticks, 1.0 - busy)
        input_rate = int(self._window.consumed[i]) / interval_s
        edges = self._out_edges[name]
        emitted = self._window.emitted[edges] / interval_s
        output_rate = float(emitted.sum()) / self._out_share[name]
        targets = [int(self._shape.target[edge]) for edge in edges]
        source = self._sources.get(name)
        costs = self._shape.unit_costs[i]
        bounds = self.state.bound[self._in_edges[name]]
        return OperatorMetrics(
            parallelism=parallelism,
            input_rate=input_rate,
            output_rate=output_rate,
            output_rates={
                self._names[target]: float(rate)
                for target, rate in zip(targets, emitted, strict=True)
                if target != OUTSIDE
            },
            true_input_rate=input_rate / busy if busy > 0 else None,
            true_output_rate=output_rate / busy if busy > 0 else None,
            busy=busy,
            backpressure=backpressure,
            idle=max(0.0, 1.0 - busy - backpressure),
            cpu=busy_truth * settings.cpu_ceiling,
            lag=int(lag[i]),
            lag_rate=int(lag[i] - self._observed_lag[i]) / interval_s,
            arrival_rate=None
            if source is None
            else int(self._arrived[source, self.tick] - self._arrived[source, self._observed_tick]) / interval_s,
            buffer_usage=min(1.0, float(lag[i]) / float(bounds.sum())) if bounds.size and bounds.min() > 0 else None,
            latency_s=None if source is None else float(latency_s[:, source].mean()),
            io_rate=input_rate * float(costs[1]),
            net_rate=input_rate * float(costs[2]),
            state_bytes=float(self.state.state_bytes[i]),
        )

    def _resize(self, name: str, plan: Plan, delay_s: float) -> None:
        i = self._index[name]
        instances = plan.parallelism[name]
        self.state.next_capacity[i] = self.job[name].capacity(instances) * self._speed(name, plan)
        self.state.switch_tick[i] = self.tick + math.ceil(delay_s / self.job.settings.tick_s)
        buffer_records = self.job.settings.buffer_records
        for edge in self._in_edges[name]:
            self.state.bound[edge] = UNBOUNDED if buffer_records is None else buffer_records * instances

    def _speed(self, name: str, plan: Plan) -> float:
        """Mean speed of an operator's instances, relative to an instance of one core."""
        mix = plan.sizes.get(name)
        speedup = self.job[name].speedup
        if not mix or speedup is None:
            return 1.0
        sizes = {size.name: size for size in self.job.settings.sizes}
        for size_name in mix:
            if size_name not in sizes:
                raise unknown_name("instance size", size_name, sizes)
        return sum(count * speedup(sizes[size]) for size, count in mix.items()) / max(1, sum(mix.values()))

    def _place(self, placement: Placement | None) -> None:
        if not self._workers:
            return
        self.state.tasks[:] = 0
        for worker, found in (placement.tasks if placement else {}).items():
            if worker not in self._workers:
                raise unknown_name("worker", worker, self._workers)
            for operator, count in found.items():
                self.state.tasks[self._workers[worker], self._index[operator]] = count

    def _extend_arrivals(self, until_tick: int) -> None:
        """Counts in the topics up to and including the start of `until_tick`, whole records only."""
        known = self._arrived.shape[1]
        if known > until_tick:
            return
        tick_s = self.job.settings.tick_s
        more = max(until_tick + 1 - known, ARRIVAL_CHUNK_TICKS)
        times = (np.arange(known - 1, known - 1 + more) + 0.5) * tick_s
        grown = [self._expected[s] + np.cumsum(curve(times) * tick_s) for s, curve in enumerate(self._curves)]
        self._expected = np.array([counts[-1] for counts in grown])
        self._arrived = np.concatenate([self._arrived, np.floor(np.array(grown)).astype(np.int64)], axis=1)
