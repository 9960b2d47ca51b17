"""What the queries share: the streams they read, costs of sources and sinks, and the topologies most of them have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.lab.pipelines.calibration import SINK_RATE, SOURCE_RATE, STATEFUL_BUSY_CEILING, flink_like, true_rate
from sluice.lab.pipelines.standard import JobBuilder, StandardPipeline, scale_parameter
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.model import Edge
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob
from sluice.spark.pipeline.specs import Dataset, Function

BIDS_RATE = 150_000.0
"""Measured bids/s of one instance reading, or delivering the results of, a query that is not calibrated."""
RESULTS_RATE = 100_000.0
"""Measured results/s of one instance delivering those of a join."""


def bids_source(measured: float = BIDS_RATE, busy_ceiling: float = STATEFUL_BUSY_CEILING) -> SimulatedOperator:
    capacity = Linear(true_rate(measured, busy_ceiling))
    return SimulatedOperator(name="bids_source", capacity=capacity, net_bytes_per_record=100)


def auction_source() -> SimulatedOperator:
    return SimulatedOperator(name="auction_source", capacity=Linear(true_rate(60_000)), net_bytes_per_record=500)


def person_source() -> SimulatedOperator:
    return SimulatedOperator(name="person_source", capacity=Linear(true_rate(60_000)), net_bytes_per_record=200)


def sink(measured: float = RESULTS_RATE, busy_ceiling: float = STATEFUL_BUSY_CEILING) -> SimulatedOperator:
    return SimulatedOperator(name="sink", capacity=Linear(true_rate(measured, busy_ceiling)))


@dataclass(frozen=True, kw_only=True)
class NexmarkQuery(StandardPipeline):
    """A query on the generated streams; each method adds a stream and the operator that reads it."""

    hot_share: float = parameter(0.0, "share of the records that concern hot keys; none in the thesis")

    def bids(self, job: JobBuilder) -> Dataset:
        from sluice.lab.generator.nexmark import BID_SCHEMA, Bids

        stream = job.pipeline.source("bids", BID_SCHEMA, generate=Bids(hot_share=self.hot_share))
        return job.source("bids_source", stream)

    def auctions(self, job: JobBuilder, **lifetimes_s: float) -> Dataset:
        from sluice.lab.generator.nexmark import AUCTION_SCHEMA, Auctions

        generate = Auctions(hot_share=self.hot_share, **lifetimes_s)
        return job.source("auction_source", job.pipeline.source("auctions", AUCTION_SCHEMA, generate=generate))

    def persons(self, job: JobBuilder) -> Dataset:
        from sluice.lab.generator.nexmark import PERSON_SCHEMA, Persons

        return job.source("person_source", job.pipeline.source("persons", PERSON_SCHEMA, generate=Persons()))


@dataclass(frozen=True, kw_only=True)
class BidsQuery(NexmarkQuery):
    """Bids, one operator, a sink."""

    peak_rate: float = parameter(110_000.0, "bids/s at load 1")
    spark_scale: float = scale_parameter(0.05)

    def source_shares(self) -> Mapping[str, float]:
        return {"bids_source": 1.0}

    def spark_job(self, name: str, operator: str, function: Function, **options: tuple[str, str]) -> SparkJob:
        job = self.builder(name)
        results = job.add(operator, function, self.bids(job), **options)
        return SparkJob(pipeline=job.sink(results), peak_rates={"bids": self.peak_rate * self.spark_scale})


@dataclass(frozen=True, kw_only=True)
class SellersQuery(NexmarkQuery):
    """Auctions joined with the persons who sell. On Spark persons come at a third of the auctions' rate."""

    peak_rate: float = parameter(33_000.0, "auctions/s, and persons/s, at load 1")
    spark_scale: float = scale_parameter(0.1)

    def source_shares(self) -> Mapping[str, float]:
        return {"auction_source": 1.0, "person_source": 1.0}

    def simulated_job(self, *operators: SimulatedOperator) -> SimulatedJob:
        """Persons pass all of the operators; auctions the last, which joins them."""
        after_persons = chain("person_source", *(operator.name for operator in operators), "sink")
        return same_start(
            (auction_source(), person_source(), *operators, sink()),
            (Edge(source="auction_source", target=operators[-1].name), *after_persons),
            initial=10,
        )

    def spark_job(self, job: JobBuilder, results: Dataset) -> SparkJob:
        from sluice.lab.generator.nexmark import AUCTIONS, PERSONS

        rate = self.peak_rate * self.spark_scale
        return SparkJob(pipeline=job.sink(results), peak_rates={"auctions": rate, "persons": rate * PERSONS / AUCTIONS})


def bids_chain(
    operator: SimulatedOperator,
    *,
    initial: int,
    source_rate: float = BIDS_RATE,
    sink_rate: float = BIDS_RATE,
    busy_ceiling: float = STATEFUL_BUSY_CEILING,
) -> SimulatedJob:
    """Bids, one operator, a sink."""
    operators = (bids_source(source_rate, busy_ceiling), operator, sink(sink_rate, busy_ceiling))
    return same_start(operators, chain(*(each.name for each in operators)), initial=initial, busy_ceiling=busy_ceiling)


def calibrated_bids_chain(operator: SimulatedOperator, *, initial: int, busy_ceiling: float) -> SimulatedJob:
    """With a source and a sink as fast as the thesis', for the queries it reports in full."""
    return bids_chain(
        operator, initial=initial, source_rate=SOURCE_RATE, sink_rate=SINK_RATE, busy_ceiling=busy_ceiling
    )


def same_start(
    operators: tuple[SimulatedOperator, ...],
    edges: tuple[Edge, ...],
    *,
    initial: int,
    busy_ceiling: float = STATEFUL_BUSY_CEILING,
) -> SimulatedJob:
    """A job whose operators all start with the same number of instances."""
    return SimulatedJob(
        operators=operators,
        edges=edges,
        settings=flink_like(busy_ceiling),
        initial_parallelism=dict.fromkeys((operator.name for operator in operators), initial),
    )
