"""What only Spark can tell about a pipeline, reported before anything starts."""

from __future__ import annotations

import pytest

from sluice import Pipeline
from sluice.errors import BadInputError
from sluice.spark.pipeline.compile import compile_pipeline

pytestmark = pytest.mark.spark

SCHEMA = "auction BIGINT, price DOUBLE, at TIMESTAMP"


def two_inputs(function, **options) -> Pipeline:
    pipeline = Pipeline("p")
    pipeline.source("bids", SCHEMA)
    pipeline.source("asks", SCHEMA)
    pipeline.operator("renamed", lambda asks: asks.selectExpr("auction", "price AS ask"), "asks")
    pipeline.sink("out", pipeline.operator("op", function, "bids", "renamed", **options))
    return pipeline


@pytest.mark.parametrize(
    ("function", "options", "stateful"),
    [
        (lambda bids, asks: bids.select("auction").union(asks.select("auction")), {}, False),
        (lambda bids, asks: bids.join(asks, "auction"), {}, True),
        (lambda bids, _: bids.groupBy("auction").count(), {"output_mode": "update"}, True),
        (lambda bids, _: bids.dropDuplicates(["auction"]), {}, True),
        (
            lambda bids, _: bids.dropDuplicatesWithinWatermark(["auction"]),
            {"watermark": {"bids": ("at", "1 hour")}},
            True,
        ),
    ],
)
def test_state_is_found_in_the_plan(spark, function, options, stateful):
    compiled = compile_pipeline(two_inputs(function, **options), spark)
    assert compiled.graph["op"].stateful is stateful
    assert not compiled.graph["renamed"].stateful
    assert [edge.ends for edge in compiled.graph.edges] == [("renamed", "op")]


@pytest.mark.parametrize(
    ("function", "options", "complaint"),
    [
        (
            lambda _, renamed: renamed.select("price"),
            {},
            "operator 'op': .*`price`.*input 'renamed' has auction bigint, ask",
        ),
        (lambda bids, _: bids.groupBy("auction").count(), {}, "operator 'op': .*output mode.*append"),
        (lambda bids, _: bids.orderBy("auction"), {}, "operator 'op': .*[Ss]orting"),
        (lambda bids, asks: bids.join(asks, bids.auction == asks.auction), {}, "returns column 'auction' twice"),
        (lambda *_: 3, {}, "operator 'op' must return a DataFrame, got int"),
        (lambda *_: 1 / 0, {}, r"operator 'op': ZeroDivisionError: division by zero \(line \d+ of .*test_compile.py\)"),
        (lambda bids, _: bids.sparkSession.range(3), {}, "does not come from its inputs"),
        (lambda bids, _: bids, {"watermark": {"bids": ("when", "1 hour")}}, "operator 'op': .*`when`"),
        (lambda bids, _: bids.distinct(), {"stateful": False}, "declared stateful=False, but its query keeps state"),
    ],
)
def test_what_cannot_work_is_refused_with_the_operators_name(spark, function, options, complaint):
    with pytest.raises(BadInputError, match=complaint) as caught:
        compile_pipeline(two_inputs(function, **options), spark)
    assert "\n" not in str(caught.value)


def test_a_schema_nobody_understands_names_the_source(spark):
    pipeline = Pipeline("p")
    pipeline.source("bids", "auction of BIGINT")
    pipeline.sink("out", pipeline.operator("copy", lambda bids: bids, "bids"))
    with pytest.raises(BadInputError, match="source 'bids': schema 'auction of BIGINT' is not understood"):
        compile_pipeline(pipeline, spark)


def chained(**options) -> Pipeline:
    pipeline = Pipeline("p", chain=True)
    pipeline.source("bids", SCHEMA)
    pipeline.operator("cheap", lambda bids: bids.where("price < 10"), "bids", slot_rate=1000, max_parallelism=8)
    pipeline.operator("euros", lambda cheap: cheap.selectExpr("auction", "price * 0.9 AS euros"), "cheap", **options)
    pipeline.operator("total", lambda euros: euros.groupBy("auction").count(), "euros", output_mode="update")
    pipeline.sink("out", "total")
    return pipeline


def test_neighbours_without_state_share_a_query(spark):
    compiled = compile_pipeline(chained(slot_rate=500, min_parallelism=2, max_parallelism=4), spark)
    assert compiled.graph.names == ("cheap+euros", "total")
    fused = compiled.queries[0]
    assert (fused.inputs, fused.output, fused.schema.names) == (("bids",), "euros", ["auction", "euros"])
    assert fused.slot_rate == pytest.approx(1 / (1 / 1000 + 1 / 500))
    assert (fused.min_parallelism, fused.max_parallelism) == (2, 4)


def test_a_chain_ends_where_it_is_told_to_or_where_somebody_else_reads(spark):
    assert compile_pipeline(chained(chain=False), spark).graph.names == ("cheap", "euros", "total")
    shared = chained()
    shared.sink("cheap_out", "cheap")
    assert compile_pipeline(shared, spark).graph.names == ("cheap", "euros", "total")
