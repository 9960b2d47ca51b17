"""The Yahoo streaming benchmark: how often campaigns were looked at.

Stresses a long line of operators, most of them cheap: events are parsed, views kept (one event in three), projected,
joined with their campaign and counted per campaign and ten seconds. The original looks campaigns up in a key-value
store and writes counts back to it; here the table of campaigns travels with the operator and counts go to a topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import flink_like, true_rate
from sluice.lab.pipelines.standard import ON_TIME, StandardPipeline, scale_parameter
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("yahoo")
@dataclass(frozen=True, kw_only=True)
class Yahoo(StandardPipeline):
    """Ad views per campaign (source, parse, filter, project, join, windowed count)."""

    peak_rate: float = parameter(120_000.0, "ad events/s at load 1")
    window_s: float = parameter(10.0, "length of the counting window")
    campaigns: int = parameter(100, "on Spark: number of campaigns")
    ads_per_campaign: int = parameter(10, "on Spark: ads of each")
    spark_scale: float = scale_parameter(0.02)

    def source_shares(self) -> Mapping[str, float]:
        return {"source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                SimulatedOperator(name="source", capacity=Linear(true_rate(80_000)), net_bytes_per_record=250),
                SimulatedOperator(name="parse", capacity=Linear(true_rate(25_000)), net_bytes_per_record=200),
                SimulatedOperator(
                    name="filter", capacity=Linear(true_rate(60_000)), selectivity=1 / 3, net_bytes_per_record=70
                ),
                SimulatedOperator(name="project", capacity=Linear(true_rate(50_000)), net_bytes_per_record=40),
                SimulatedOperator(name="join", capacity=Linear(true_rate(15_000)), net_bytes_per_record=60),
                SimulatedOperator(
                    name="count",
                    capacity=Linear(true_rate(20_000)),
                    selectivity=0.01,
                    window_s=self.window_s,
                    state_bytes_per_record=30,
                    state_ttl_s=self.window_s,
                    io_bytes_per_record=300,
                ),
            ),
            edges=chain("source", "parse", "filter", "project", "join", "count"),
            settings=flink_like(),
            initial_parallelism=dict.fromkeys(("source", "parse", "filter", "project", "join", "count"), 2),
        )

    def spark(self) -> SparkJob:
        from sluice.lab.generator.ads import AD_EVENT_SCHEMA, AdEvents

        job = self.builder("yahoo")
        generate = AdEvents(campaigns=self.campaigns, ads_per_campaign=self.ads_per_campaign)
        events = job.pipeline.source("events", AD_EVENT_SCHEMA, generate=generate)
        parsed = job.add("parse", parse_json, job.source("source", events))
        projected = job.add("project", project_view, job.add("filter", only_views, parsed))
        join = partial(with_campaigns, campaigns=self.campaigns, ads=self.campaigns * self.ads_per_campaign)
        joined = job.add("join", join, projected)
        counted = job.add("count", partial(views_per_window, window_s=self.window_s), joined, watermark=ON_TIME)
        job.pipeline.sink("out", counted)
        return SparkJob(pipeline=job.pipeline, peak_rates={"events": self.peak_rate * self.spark_scale})


def parse_json(events: DataFrame) -> DataFrame:
    fields = "user_id STRING, page_id STRING, ad_id STRING, ad_type STRING, event_type STRING, event_time BIGINT"
    return events.selectExpr(f"from_json(event, '{fields}') AS event").select("event.*")


def only_views(events: DataFrame) -> DataFrame:
    return events.where("event_type = 'view'")


def project_view(views: DataFrame) -> DataFrame:
    return views.selectExpr("ad_id", "timestamp_micros(event_time) AS at")


def with_campaigns(views: DataFrame, *, campaigns: int, ads: int) -> DataFrame:
    """Ads belong to campaigns in turn."""
    from pyspark.sql.functions import broadcast

    table = views.sparkSession.range(ads).selectExpr(
        "format_string('ad-%05d', id) AS ad_id", f"id % {campaigns} AS campaign"
    )
    return views.join(broadcast(table), "ad_id").select("campaign", "at")


def views_per_window(views: DataFrame, *, window_s: float) -> DataFrame:
    from pyspark.sql.functions import count, window

    counted = views.groupBy(window("at", f"{window_s} seconds"), "campaign").agg(count("*").alias("views"))
    return counted.selectExpr("campaign", "window.start AS began", "views")
