"""Writing a job: both notations, and every mistake that can be named before Spark starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

import sluice
from sluice import Pipeline
from sluice.errors import BadInputError

SCHEMA = "auction BIGINT, price DOUBLE, at TIMESTAMP"


def same(bids):
    return bids


def test_decorated_and_called_operators_mean_the_same():
    called = Pipeline("orders")
    bids = called.source("bids", SCHEMA)
    called.sink("out", called.operator("same", same, bids, max_parallelism=4))

    decorated = Pipeline("orders")
    decorated.source("bids", SCHEMA)
    decorated.sink("out", decorated.operator(max_parallelism=4)(same))

    assert called.graph == decorated.graph
    assert called.operators == decorated.operators


def test_datasets_go_by_name_in_any_order():
    pipeline = Pipeline("join")
    pipeline.sink("out", "matched")

    @pipeline.operator(watermark={"bids": ("at", "10 seconds")}, stateful=True)
    def matched(bids, cheap):
        return bids.join(cheap, "auction")

    @pipeline.operator
    def cheap(bids):
        return bids

    pipeline.source("bids", SCHEMA)
    pipeline.validate()
    assert pipeline.topology.order == ("cheap", "matched")
    assert pipeline.graph["matched"].stateful
    assert pipeline.consumers_of("bids") == ("matched", "cheap")
    assert (pipeline.topic_of("matched"), pipeline.topic_of("cheap")) == ("out", "cheap")
    assert pipeline.operators["matched"].watermarks == {"bids": ("at", "10 seconds")}


def test_defining_a_pipeline_does_not_import_spark():
    code = "import sluice, sys; sluice.Pipeline('p').source('s', 'k INT'); sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_package_says_what_it_does_not_have():
    with pytest.raises(AttributeError, match="Pipelines"):
        _ = sluice.Pipelines


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"min_parallelism": 0}, "min_parallelism must be at least 1, got 0"),
        ({"min_parallelism": 4, "max_parallelism": 2}, r"at least min_parallelism \(4\), got 2"),
        ({"slot_rate": 0}, "slot_rate must be positive records/s, got 0"),
        ({"state_partitions": 0}, "state_partitions must be at least 1, got 0"),
        ({"output_mode": "complete"}, "must be 'append' or 'update', got 'complete'"),
        ({"paralelism": 3}, "'paralelism'; known: .*max_parallelism"),
        ({"watermark": "10 seconds"}, r"must be \(column, delay\).*got '10 seconds'"),
        ({"watermark": ("at", "soon")}, r"must be \(column, delay\)"),
        ({"watermark": {"asks": ("at", "1 second")}}, "'asks'; known: bids"),
    ],
)
def test_options_of_an_operator_fail_early_and_quote_the_value(options, complaint):
    with pytest.raises(BadInputError, match=complaint):
        Pipeline("p").operator("same", same, "bids", **options)


def _unknown_input(p: Pipeline) -> None:
    p.operator("a", same, "asks")


def _cycle(p: Pipeline) -> None:
    p.operator("a", same, "b")
    p.operator("b", same, "a")
    p.sink("out", "b")
    p.operator("c", same, "bids")
    p.sink("out2", "c")


def _same_name(p: Pipeline) -> None:
    p.operator("bids", same, "bids")


def _two_sinks(p: Pipeline) -> None:
    a = p.operator("a", same, "bids")
    p.sink("one", a)
    p.sink("two", a)


def _leads_nowhere(p: Pipeline) -> None:
    p.operator("a", same, "bids")


def _sink_of_a_source(p: Pipeline) -> None:
    p.operator("a", same, "bids")
    p.sink("out", "bids")


def _wrong_arity(p: Pipeline) -> None:
    p.operator("a", same, "bids", "asks")


def _reads_twice(p: Pipeline) -> None:
    p.operator("a", lambda a, b: a.union(b), "bids", "bids")


def _reads_nothing(p: Pipeline) -> None:
    p.operator("a", lambda: None)


def _odd_name(p: Pipeline) -> None:
    p.operator("a/b", same, "bids")


def _nothing(_: Pipeline) -> None:
    return


def _built(build) -> None:
    pipeline = Pipeline("p")
    pipeline.source("bids", SCHEMA)
    build(pipeline)
    pipeline.validate()


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (_unknown_input, "input of operator 'a': 'asks'; known: a, bids"),
        (_cycle, "the edges form a cycle: "),
        (_same_name, "operator 'bids': there is already a source of that name"),
        (_two_sinks, "sink 'two': operator 'a' already has a sink"),
        (_leads_nowhere, "nothing reads 'a'"),
        (_sink_of_a_source, "operator of sink 'out': 'bids'; known: a"),
        (_wrong_arity, r"operator 'a' reads 2 dataset\(s\), its function does not"),
        (_reads_twice, "operator 'a' reads a dataset twice: bids, bids"),
        (_reads_nothing, "operator 'a' reads nothing"),
        (_odd_name, "operator name must be a letter.*got 'a/b'"),
        (_nothing, "pipeline 'p' has no operators"),
    ],
)
def test_a_job_that_cannot_run_is_refused_in_one_line(build, complaint):
    with pytest.raises(BadInputError, match=complaint) as caught:
        _built(build)
    assert "\n" not in str(caught.value)
