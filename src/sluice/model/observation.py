"""What an engine saw in one window. Unknown is null, never 0.

Units everywhere: rates in records/s, time in seconds, lag in records, shares between 0 and 1.
"""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field, model_validator
from typing_extensions import Self

from sluice.model.base import Count, Finite, Frozen, Name, NonNegative, Parallelism, Positive, Share
from sluice.model.recommendation import InstanceMix
from sluice.model.topology import Topology


class OperatorMetrics(Frozen):
    """One operator in one window, summed (rates) or averaged (shares) over its instances."""

    model_config = ConfigDict(extra="ignore")

    parallelism: Parallelism = Field(description="instances (slots) running now")
    sizes: InstanceMix | None = Field(None, description="how many of them have which size, where sizes differ")
    size_rates: dict[Name, Positive] | None = Field(
        None, description="size -> records/s that one instance of it reads while it works, where sizes are told apart"
    )
    input_rate: NonNegative | None = Field(None, description="records/s consumed")
    output_rate: NonNegative | None = Field(
        None, description="records/s emitted; one copied to several successors counts once"
    )
    output_rates: dict[Name, NonNegative] | None = Field(
        None, description="records/s emitted per successor, where the engine can tell them apart"
    )
    true_input_rate: NonNegative | None = Field(
        None, description="records/s it would consume if it never waited: input_rate / busy"
    )
    true_output_rate: NonNegative | None = Field(
        None, description="records/s it would emit if it never waited: output_rate / busy"
    )
    busy: Share | None = Field(None, description="share of the window spent on useful work")
    backpressure: Share | None = Field(None, description="share of the window blocked by a full buffer downstream")
    idle: Share | None = Field(None, description="share of the window without input: 1 - busy - backpressure")
    cpu: NonNegative | None = Field(None, description="CPU utilisation of its instances; saturates near 0.9")
    lag: NonNegative | None = Field(None, description="records waiting at its inputs")
    lag_rate: Finite | None = Field(None, description="change of lag, records/s")
    arrival_rate: NonNegative | None = Field(None, description="sources: records/s written to the topic it reads")
    buffer_usage: Share | None = Field(None, description="how full its input buffers are; null if unbounded")
    latency_s: NonNegative | None = Field(
        None, description="sources: how long the record now being read has waited in its topic"
    )
    io_rate: NonNegative | None = Field(None, description="state bytes read and written per second")
    net_rate: NonNegative | None = Field(None, description="bytes emitted per second")
    state_bytes: NonNegative | None = Field(None, description="size of its state")
    state_shares: tuple[Share, ...] | None = Field(
        None, description="share of its CPU time that each partition of its state takes; what is left is divided evenly"
    )
    batch_s: NonNegative | None = Field(None, description="mean processing time of a micro-batch")
    batch_interval_s: Positive | None = Field(None, description="configured time between micro-batches")

    def per_instance_rate(self) -> float | None:
        """True input rate of one instance; null while nothing is known (no input, or a busy share of 0).

        Uses `true_input_rate` where given, else `input_rate / busy`.
        """
        true_rate = self.true_input_rate
        if true_rate is None and self.input_rate is not None and self.busy:
            true_rate = self.input_rate / self.busy
        if not true_rate or self.busy == 0 or self.input_rate == 0:
            return None
        return true_rate / self.parallelism


class WorkerMetrics(Frozen):
    """One worker in one window: what ran on it, beside what it could have run."""

    model_config = ConfigDict(extra="ignore")

    slots: Parallelism
    source_tasks: dict[Name, Count] = Field(default_factory=dict, description="operator -> tasks that read its input")
    state_tasks: dict[Name, Count] = Field(default_factory=dict, description="operator -> tasks that kept its state")
    busy: Share | None = Field(None, description="time of tasks over time of slots")
    task_cpu: NonNegative | None = Field(None, description="cores used by tasks in the JVM")
    cpu: NonNegative | None = Field(None, description="cores used by the worker's whole process tree, Python included")
    net_rate: NonNegative | None = Field(None, description="shuffle bytes fetched from other workers per second")
    topic_rate: NonNegative | None = Field(None, description="bytes its tasks wrote to topics per second")
    io_rate: NonNegative | None = Field(None, description="state bytes read and written per second, by its state tasks")
    cpu_capacity: NonNegative | None = Field(None, description="cores it may use; null: not known")
    io_capacity: NonNegative | None = Field(None, description="state bytes/s it can read and write; null: not known")
    net_capacity: NonNegative | None = Field(None, description="bytes/s it can send; null: not known")


class NodeTypeMetrics(Frozen):
    """One type of nodes an engine can start."""

    model_config = ConfigDict(extra="ignore")

    nodes: Count = Field(description="paid for now, those that start or drain among them")
    price_per_hour: NonNegative = 0.0
    start_s: NonNegative = Field(description="from a request to the first task: as last measured, else as expected")
    available: bool = Field(True, description="false: the last start failed or is overdue, and no other is tried yet")
    coming: Count = Field(0, description="requested, and not joined yet")


class PlacedTasks(Frozen):
    """Tasks of a window that a placement had a worker for, and those of them that ran there."""

    placed: Count
    followed: Count
    displaced: Count = Field(0, description="ran elsewhere because the planned executor was gone")


class ActionCost(Frozen):
    """What changing a target costs on this engine, as far as earlier actions of the run have shown, and its limit."""

    model_config = ConfigDict(extra="ignore")

    downtime_s: NonNegative | None = Field(None, description="how long the last action stopped the job")
    start_s: NonNegative | None = Field(None, description="how long the last requested instances took to come")
    cooldown_s: NonNegative = Field(0.0, description="time after an action without another one")
    cooling_s: NonNegative = Field(0.0, description="what is left of it now")
    most_slots: Parallelism | None = Field(None, description="slots all operators may have together; null: no limit")


class Observation(Frozen):
    """All operators of a job in one window, and the edges between them."""

    model_config = ConfigDict(extra="ignore")

    time_s: NonNegative = Field(description="engine time at the end of the window")
    interval_s: Positive = Field(description="length of the window")
    operators: dict[Name, OperatorMetrics]
    edges: tuple[tuple[Name, Name], ...] = ()
    latency_samples_s: tuple[NonNegative, ...] = Field(
        (), description="waiting time of the record being read, sampled evenly over the window"
    )
    at_work: bool | None = Field(
        None, description="whether the job was seen at work in the window, also where nothing is measured yet"
    )
    other_busy: Share | None = Field(
        None, description="share of all slots used by work that is no operator's; null: there was no such work"
    )

    workers: dict[Name, WorkerMetrics] = Field(
        default_factory=dict, description="what ran on which worker; empty where all run in one process"
    )
    node_types: dict[Name, NodeTypeMetrics] = Field(
        default_factory=dict, description="what an engine with sizes can start, and has; empty elsewhere"
    )
    placement: PlacedTasks | None = Field(None, description="how the placement was followed; null without one")
    action_cost: ActionCost | None = Field(
        None, description="what an action costs here; the loop adds it, engines do not"
    )

    @model_validator(mode="after")
    def _is_a_dag(self) -> Self:
        _ = self.topology
        return self

    @property
    def topology(self) -> Topology:
        return Topology.of(self.operators, self.edges)

    @property
    def parallelism(self) -> dict[str, int]:
        return {name: metrics.parallelism for name, metrics in self.operators.items()}


def unknown_metrics(data: object) -> tuple[str, ...]:
    """Metric names in raw observation data that no field knows: most likely a typing error worth a warning."""
    if not isinstance(data, dict) or not isinstance(data.get("operators"), dict):
        return ()
    known = OperatorMetrics.model_fields.keys()
    found = {
        key
        for metrics in data["operators"].values()
        if isinstance(metrics, dict)
        for key in metrics
        if key not in known
    }
    return tuple(sorted(found))


def observation_schema() -> dict[str, Any]:
    """The published JSON schema of an observation."""
    return Observation.model_json_schema()
