"""Which pipelines real-time mode takes; of the others, one line says why not."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.errors import BadInputError
from sluice.spark.pipeline.compile import CompiledPipeline, Query
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.real_time.plan import plan_real_time


def same(frame: Any) -> Any:
    return frame


def compiled(pipeline: Pipeline, *stateful: str) -> CompiledPipeline:
    """As the compiler does it, for schemas that do not matter."""
    from pyspark.sql.types import StructType

    pipeline.validate()
    queries = tuple(
        Query(
            name=name,
            operators=(pipeline.operators[name],),
            inputs=tuple(pipeline.topic_of(read) for read in pipeline.operators[name].inputs),
            output=pipeline.topic_of(name),
            schema=StructType(),
            stateful=name in stateful,
            sink=next((one for one in pipeline.sink_specs.values() if one.operator == name and not one.is_topic), None),
        )
        for name in pipeline.topology.order
    )
    return CompiledPipeline(
        name=pipeline.name, queries=queries, source_schemas=dict.fromkeys(pipeline.sources, StructType())
    )


def row(*operators: str, **options: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    above = pipeline.source("bought", "id BIGINT")
    for name in operators:
        above = pipeline.operator(name, same, above, **options)
    pipeline.sink("out", operators[-1])
    return pipeline


def test_operators_in_a_row_are_one_stage_between_two_topics() -> None:
    plan = plan_real_time(row("clean", "price"), compiled(row("clean", "price")))
    assert (plan.source, plan.name, plan.sink, plan.stateful) == ("bought", "clean+price", "out", False)


def test_one_operator_may_keep_state_if_it_emits_updates() -> None:
    pipeline = row("count", output_mode="update", state_partitions=3)
    plan = plan_real_time(pipeline, compiled(pipeline, "count"))
    assert (plan.stateful, plan.state_partitions) == (True, 3)


def test_stages_have_names_that_no_operator_takes() -> None:
    assert plan_real_time(row("read"), compiled(row("read"))).name == "read-work"


def two_sources() -> tuple[Pipeline, CompiledPipeline]:
    pipeline = row("clean")
    pipeline.source("sold", "id BIGINT")
    pipeline.operator("join", lambda left, right: left, "clean", "sold")
    pipeline.sink("joined", "join")
    return pipeline, compiled(pipeline)


def a_function_as_source() -> tuple[Pipeline, CompiledPipeline]:
    pipeline = Pipeline("shop")

    @pipeline.source
    def bought(spark: Any) -> Any:
        return spark

    pipeline.operator("clean", same, "bought")
    pipeline.sink("out", "clean")
    return pipeline, compiled(pipeline)


def a_branch() -> tuple[Pipeline, CompiledPipeline]:
    pipeline = row("clean")
    pipeline.operator("other", same, "bought")
    pipeline.sink("others", "other")
    return pipeline, compiled(pipeline)


def files_as_sink() -> tuple[Pipeline, CompiledPipeline]:
    pipeline = Pipeline("shop")
    pipeline.source("bought", "id BIGINT")
    pipeline.operator("clean", same, "bought")
    pipeline.sink("out", "clean", format="parquet", path="out")
    return pipeline, compiled(pipeline)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (two_sources(), r"2 sources \(bought, sold\)"),
        (a_function_as_source(), "source 'bought' is a function"),
        (a_branch(), "operator 'other' branches off"),
        (files_as_sink(), "sink 'out' is no topic"),
        ((row("count"), compiled(row("count"), "count")), "output_mode='append'.*must be 'update'"),
        (
            (row("a", "b", output_mode="update"), compiled(row("a", "b", output_mode="update"), "a", "b")),
            "'a' and 'b' both keep state",
        ),
    ],
)
def test_a_pipeline_that_does_not_qualify_is_told_why(made: tuple[Pipeline, CompiledPipeline], why: str) -> None:
    with pytest.raises(BadInputError, match=f"'shop' cannot run in real-time mode: .*{why}"):
        plan_real_time(*made)
