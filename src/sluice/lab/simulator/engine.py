"""The simulator as an engine: time passes only in `clock.sleep_s`, and the same seed gives the same run."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sluice.control.engine import Ability, RecordCount
from sluice.errors import BadInputError, unknown_name
from sluice.lab.simulator.job import RateCurve, SimulatedJob
from sluice.lab.simulator.metrics import Ticks, Wiring, lag_records, observe
from sluice.lab.simulator.state import UNBOUNDED, Floats, Ints, make_shape, make_state, make_window
from sluice.lab.simulator.ticking import Ticker
from sluice.model import (
    Graph,
    InstanceSize,
    NodeTypeMetrics,
    Observation,
    OperatorChange,
    Placement,
    Reconciliation,
    Target,
)

ARRIVAL_CHUNK_TICKS = 4096
NOISE_CHUNK_TICKS = 600


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
        self._ticker = Ticker(job.settings.tick_s, self._shape, self.state, self._window)
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._noise: Floats = np.empty((0, len(self._names)))
        self._arrived: Ints = np.zeros((len(self._curves), 1), dtype=np.int64)
        self._expected: Floats = np.zeros(len(self._curves))
        self._latencies: list[Floats] = []
        self._observed_tick = 0
        self._observed_lag = [0] * len(self._names)
        self._requested: Target | None = None
        self._downtime_s = 0.0
        self.clock = SimulatedClock(self)
        self._index = {name: number for number, name in enumerate(self._names)}
        self._operators = {operator.name: operator for operator in job.operators}
        self._wiring = Wiring.of(job, self._shape)

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def tick_s(self) -> None:
        """Nothing changes by itself here, so the loop need not look between cycles."""
        return None

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset({"sizes", "placement"})

    def start(self, target: Target) -> Target:
        self._requested = target
        for name in self._names:
            self._resize(name, target, delay_s=0.0)
        self._place(target.placement)
        self.state.capacity[:] = self.state.next_capacity
        return target

    def expect(self, duration_s: float) -> None:
        """How long the run is going to be, where that is known."""
        self._ticker.expect(round(duration_s / self.job.settings.tick_s))

    def run_ticks(self, ticks: int) -> None:
        self._extend_arrivals(self.tick + ticks)
        latency_s = np.zeros((ticks, len(self._curves)))
        self._ticker.advance(self.tick, self._arrived, self._next_noise(ticks), latency_s)
        self._latencies.append(latency_s)
        self.tick += ticks

    def _next_noise(self, ticks: int) -> Floats:
        """Drawn for many ticks at once: the numbers are the same, the calls are fewer."""
        if len(self._noise) < ticks:
            sigma = self.job.settings.noise
            normal = self._random.standard_normal((max(ticks, NOISE_CHUNK_TICKS), len(self._names)))
            # the mean of a lognormal is exp(sigma^2 / 2): taken out, so that noise does not change the mean speed
            self._noise = np.concatenate([self._noise, np.exp(sigma * normal - sigma**2 / 2)])
        drawn, self._noise = self._noise[:ticks], self._noise[ticks:]
        return drawn

    def observe(self) -> Observation:
        if self._requested is None:
            raise RuntimeError("observe before start")
        if self.tick == self._observed_tick:
            raise RuntimeError("no time has passed since the last observation")
        latency_s = np.concatenate(self._latencies)
        lag = self.lag_records()
        observation = observe(
            self.job,
            self._wiring,
            self._shape.unit_costs,
            self._requested,
            Ticks(self._observed_tick, self.tick, self.job.settings.tick_s),
            self.state,
            self._window,
            latency_s,
            self._arrived,
            lag,
            self._observed_lag,
        )
        for sums in self._window:
            sums.fill(0)
        self._latencies.clear()
        self._observed_tick = self.tick
        self._observed_lag = lag
        return observation.model_copy(update={"node_types": self._sizes_paid()})

    def _sizes_paid(self) -> dict[str, NodeTypeMetrics]:
        """Sizes come at once here: only what they cost is to be known. Empty while nobody has chosen any."""
        if self._requested is None or not self._requested.sizes:
            return {}
        return {
            size.name: NodeTypeMetrics(
                nodes=sum(mix.get(size.name, 0) for mix in self._requested.sizes.values()),
                price_per_hour=size.price_per_hour,
                start_s=0.0,
            )
            for size in self.job.settings.sizes
        }

    def maintain(self) -> tuple[str, ...]:
        return ()

    def reconcile(self, target: Target) -> Reconciliation:
        old = self._requested
        if old is None:
            raise RuntimeError("reconcile before start")
        changed = {
            name: (old.parallelism[name], target.parallelism[name])
            for name in self._names
            if old.parallelism[name] != target.parallelism[name] or old.sizes.get(name) != target.sizes.get(name)
        }
        downtime_s = self._restart(old, target, changed) if changed else 0.0
        if target.placement != old.placement or changed:
            self._place(target.placement)
        self._requested = target
        return Reconciliation(
            requested=target.parallelism,
            observed=target.parallelism,
            changes={name: OperatorChange(before=before, requested=after) for name, (before, after) in changed.items()},
            downtime_s=downtime_s,
        )

    def _restart(self, old: Target, new: Target, changed: Mapping[str, tuple[int, int]]) -> float:
        """Stop what has to stop for the change; how long it stands still."""
        settings = self.job.settings
        stopped = self._names if settings.rescale == "job" else tuple(changed)
        moved_bytes = sum(float(self.state.state_bytes[self._index[name]]) for name in stopped)
        downtime_s = settings.downtime_s + moved_bytes / settings.state_bandwidth_bytes_per_s
        up_tick = self.tick + math.ceil(downtime_s / settings.tick_s)
        for name in stopped:
            self.state.down_until_tick[self._index[name]] = up_tick
        for name, (before, after) in changed.items():
            starts = after > before or _grows(old.sizes.get(name, {}), new.sizes.get(name, {}))
            self._resize(name, new, delay_s=downtime_s + (settings.instance_start_s if starts else 0.0))
        self._downtime_s += downtime_s
        return downtime_s

    def stop(self) -> RecordCount:
        arrived = int(self._arrived[:, self.tick].sum())
        read, expired = int(self.state.read.sum()), int(self.state.expired.sum())
        return RecordCount(
            arrived=arrived,
            processed=read - expired,
            waiting=arrived - read,
            lost=expired + max(0, self.missing_records()),
            duplicated=max(0, -self.missing_records()),
            downtime_s=self._downtime_s,
        )

    def missing_records(self) -> int:
        """Records emitted into an edge that its consumer neither took nor has waiting; always 0."""
        missing = 0
        for i, edges in enumerate(self._wiring.in_edges):
            if edges:
                came = int(self.state.emitted[list(edges)].sum())
                missing += came - int(self.state.consumed[i]) - int(self.state.queued[list(edges)].sum())
        return missing

    def arrived_records(self) -> dict[str, int]:
        return dict(zip(self._graph.topology.sources, self._arrived[:, self.tick].tolist(), strict=True))

    def lag_records(self) -> list[int]:
        """Per operator: what waits in its topic (sources) or at its inputs."""
        return lag_records(self._wiring, self.state, self._arrived[:, self.tick])

    def _resize(self, name: str, target: Target, delay_s: float) -> None:
        i = self._index[name]
        instances = target.parallelism[name]
        self.state.next_capacity[i] = self._operators[name].capacity(instances) * self._speed(name, target)
        self.state.switch_tick[i] = self.tick + math.ceil(delay_s / self.job.settings.tick_s)
        buffer_records = self.job.settings.buffer_records
        for edge in self._wiring.in_edges[i]:
            self.state.bound[edge] = UNBOUNDED if buffer_records is None else buffer_records * instances

    def _speed(self, name: str, target: Target) -> float:
        """Mean speed of an operator's instances, relative to an instance of one core."""
        mix = target.sizes.get(name)
        if not mix:
            return 1.0
        speedup = self._operators[name].speedup or _cores
        sizes = {size.name: size for size in self.job.settings.sizes}
        for size_name in mix:
            if size_name not in sizes:
                raise unknown_name("instance size", size_name, sizes)
        return sum(count * speedup(sizes[size]) for size, count in mix.items()) / max(1, sum(mix.values()))

    def _place(self, placement: Placement | None) -> None:
        if not self._workers:
            return
        self.state.tasks[:] = 0
        if placement is None:
            return
        from sluice.placement.problem import remote_shares

        remote = remote_shares(self._graph, placement)
        for worker, found in placement.tasks.items():
            if worker not in self._workers:
                raise unknown_name("worker", worker, self._workers)
            row = self._workers[worker]
            for operator, count in found.items():
                self.state.tasks[row, self._index[operator]] = count
                self.state.remote_share[row, self._index[operator]] = remote[worker].get(operator, 0.0)

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


def _cores(size: InstanceSize) -> float:
    return size.cpu_cores


def _grows(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Whether some size has more instances than before: swapping sizes starts instances, too."""
    return any(count > before.get(size, 0) for size, count in after.items())
