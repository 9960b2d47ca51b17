"""From a pipeline to the queries that run it: schemas followed from operator to operator, state found, chains fused.

Every function is called once on a streaming DataFrame of its input's schema that never holds a record. Whatever Spark
would refuse later is refused here, before anything has started.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluice.errors import BadInputError
from sluice.model import Edge, Graph, Operator
from sluice.spark.internals import plans
from sluice.spark.kafka.rows import avro_schema
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.specs import OperatorSpec, OutputMode, SinkSpec, SourceSpec
from sluice.spark.session import quiet_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

STATEFUL_NODES = {
    "Aggregate",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "Distinct",
    "FlatMapGroupsInPandasWithState",
    "FlatMapGroupsWithState",
    "GlobalLimit",
    "TransformWithState",
    "TransformWithStateInPySpark",
    "TransformWithStateInPandas",
}


@dataclass(frozen=True, kw_only=True)
class Query:
    """One streaming query: an operator, or a chain of operators without state."""

    name: str
    operators: tuple[OperatorSpec, ...]
    inputs: tuple[str, ...]
    """Names of the topics it reads, in the order of its function's parameters."""
    output: str
    """Name of the topic it writes."""
    schema: StructType = field(compare=False)
    stateful: bool
    sink: SinkSpec | None = None
    """Where it writes instead of a topic."""

    @property
    def first(self) -> OperatorSpec:
        return self.operators[0]

    @property
    def output_mode(self) -> OutputMode:
        return self.operators[-1].output_mode

    @property
    def min_parallelism(self) -> int:
        return max(operator.min_parallelism for operator in self.operators)

    @property
    def max_parallelism(self) -> int | None:
        highs = [operator.max_parallelism for operator in self.operators if operator.max_parallelism is not None]
        return max(min(highs), self.min_parallelism) if highs else None

    @property
    def slot_rate(self) -> float | None:
        """Of a single slot; null if slots are not paced."""
        return self.slot_rate_at(1)

    def slot_rate_at(self, parallelism: int) -> float | None:
        """One slot does the work of every link, one after the other; assumes each passes all records on."""
        rates = [operator.slot_rate_at(parallelism) for operator in self.operators]
        seconds = [1 / rate for rate in rates if rate is not None]
        return 1 / sum(seconds) if seconds else None

    def build(self, frames: Sequence[DataFrame]) -> DataFrame:
        frame = call_operator(self.first, frames)
        for operator in self.operators[1:]:
            frame = call_operator(operator, [frame])
        return frame


@dataclass(frozen=True, kw_only=True)
class CompiledPipeline:
    """The queries in topological order, and the topics they read and write."""

    name: str
    queries: tuple[Query, ...]
    source_schemas: dict[str, StructType]

    @property
    def graph(self) -> Graph:
        return Graph(
            operators=tuple(
                Operator(
                    name=query.name,
                    stateful=query.stateful,
                    min_parallelism=query.min_parallelism,
                    max_parallelism=query.max_parallelism,
                )
                for query in self.queries
            ),
            edges=tuple(
                Edge.model_validate({"from": above.name, "to": below.name})
                for above in self.queries
                for below in self.queries
                if above.output in below.inputs
            ),
        )

    def topic_schemas(self) -> dict[str, StructType]:
        return {**self.source_schemas, **{query.output: query.schema for query in self.queries if query.sink is None}}


def compile_pipeline(pipeline: Pipeline, spark: SparkSession) -> CompiledPipeline:
    """Check the whole pipeline against Spark; bad input names the operator and what is wrong with it."""
    with quiet_errors():
        return _compile(pipeline, spark)


def _compile(pipeline: Pipeline, spark: SparkSession) -> CompiledPipeline:
    pipeline.validate()
    source_schemas = {name: _source_schema(spec, spark) for name, spec in pipeline.sources.items()}
    schemas = dict(source_schemas)
    stateful: dict[str, bool] = {}
    for name in pipeline.topology.order:
        operator = pipeline.operators[name]
        frame = call_operator(operator, [_never(spark, schemas[read]) for read in operator.inputs])
        plan = _analyzed(operator, frame)
        _check_streaming(operator, spark, plan)
        schemas[name] = frame.schema
        found = plans.keeps_state(plan, STATEFUL_NODES)
        if operator.stateful is False and found:
            raise BadInputError(f"operator {name!r} is declared stateful=False, but its query keeps state")
        stateful[name] = found
    queries = tuple(
        Query(
            name="+".join(operator.name for operator in chain),
            operators=chain,
            inputs=tuple(pipeline.topic_of(read) for read in chain[0].inputs),
            output=pipeline.topic_of(chain[-1].name),
            schema=schemas[chain[-1].name],
            stateful=stateful[chain[0].name],
            sink=_other_sink(pipeline, chain[-1].name),
        )
        for chain in _chains(pipeline, stateful)
    )
    return CompiledPipeline(name=pipeline.name, queries=queries, source_schemas=source_schemas)


def call_operator(operator: OperatorSpec, inputs: Sequence[DataFrame]) -> DataFrame:
    """The operator's DataFrame, its watermarks set on the inputs first."""
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

    try:
        frames = [
            frame.withWatermark(*operator.watermarks[name]) if name in operator.watermarks else frame
            for name, frame in zip(operator.inputs, inputs, strict=True)
        ]
        result = operator.function(*frames)
    except PySparkException as error:
        raise BadInputError(
            f"operator {operator.name!r}: {_first_line(error)}; {_described(operator, inputs)}"
        ) from error
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise BadInputError(
            f"operator {operator.name!r}: {type(error).__name__}: {error} (line {place.lineno} of {place.filename})"
        ) from error
    if not isinstance(result, DataFrame):
        raise BadInputError(f"operator {operator.name!r} must return a DataFrame, got {type(result).__name__}")
    if not result.isStreaming:
        raise BadInputError(f"operator {operator.name!r} returned a DataFrame that does not come from its inputs")
    return result


def _chains(pipeline: Pipeline, stateful: Mapping[str, bool]) -> list[tuple[OperatorSpec, ...]]:
    """Fuse a stateless operator into the one above it if both allow it and nothing else reads what is between."""
    chains: dict[str, list[OperatorSpec]] = {}
    for name in pipeline.topology.order:
        operator = pipeline.operators[name]
        above = operator.inputs[0]
        fits = (
            operator.chain
            and len(operator.inputs) == 1
            and above in chains
            and pipeline.operators[above].chain
            and not stateful[name]
            and not stateful[above]
            and pipeline.consumers_of(above) == (name,)
            and above not in pipeline.sinks.values()
        )
        chain = chains.pop(above) if fits else []
        chains[name] = [*chain, operator]
    return [tuple(chain) for chain in chains.values()]


def _never(spark: SparkSession, schema: StructType) -> DataFrame:
    """A streaming DataFrame of this schema, for analysis only."""
    from pyspark.sql.functions import lit

    columns = [lit(None).cast(column.dataType).alias(column.name) for column in schema.fields]
    return spark.readStream.format("rate").load().select(*columns)


def _other_sink(pipeline: Pipeline, operator: str) -> SinkSpec | None:
    found = pipeline.sink_specs.get(pipeline.topic_of(operator))
    return None if found is None or found.is_topic else found


def _source_schema(spec: SourceSpec, spark: SparkSession) -> StructType:
    if spec.avro is not None:
        return _avro_schema(spec.name, spec.avro, spark)
    return _schema(spec.name, spec.schema) if spec.schema is not None else read_source(spec, spark).schema


def _avro_schema(name: str, avro: str, spark: SparkSession) -> StructType:
    from pyspark.errors import PySparkException

    try:
        return avro_schema(spark, avro)
    except PySparkException as error:
        raise BadInputError(f"source {name!r}: the Avro schema is not understood: {_first_line(error)}") from error


def read_source(spec: SourceSpec, spark: SparkSession) -> DataFrame:
    """The streaming DataFrame of a source that is a function."""
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

    assert spec.read is not None
    try:
        frame = spec.read(spark)
    except PySparkException as error:
        raise BadInputError(f"source {spec.name!r}: {_first_line(error)}") from error
    except Exception as error:
        raise BadInputError(f"source {spec.name!r}: {type(error).__name__}: {error}") from error
    if not isinstance(frame, DataFrame) or not frame.isStreaming:
        raise BadInputError(f"source {spec.name!r} must return a streaming DataFrame (spark.readStream), got {frame!r}")
    return frame


def _schema(name: str, given: StructType | str) -> StructType:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        schema = StructType.fromDDL(given) if isinstance(given, str) else given
    except PySparkException as error:
        raise BadInputError(f"source {name!r}: schema {given!r} is not understood: {_first_line(error)}") from error
    if not isinstance(schema, StructType) or not schema.fields:
        raise BadInputError(f"source {name!r}: schema must be a DDL string or a StructType with columns, got {given!r}")
    return schema


def _analyzed(operator: OperatorSpec, frame: DataFrame) -> Any:
    names = [column.name for column in frame.schema.fields]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BadInputError(f"operator {operator.name!r} returns column {min(twice)!r} twice; rename one")
    return plans.analyzed_plan(frame)


def _check_streaming(operator: OperatorSpec, spark: SparkSession, plan: Any) -> None:
    """What Spark itself checks when a query starts: is this plan allowed on a stream in this output mode?"""
    from pyspark.errors import AnalysisException

    try:
        plans.check_streaming(spark, plan, operator.output_mode)
    except AnalysisException as error:
        raise BadInputError(f"operator {operator.name!r}: {_first_line(error)}") from error


def _described(operator: OperatorSpec, inputs: Sequence[DataFrame]) -> str:
    return "; ".join(
        f"input {name!r} has " + ", ".join(f"{column.name} {column.dataType.simpleString()}" for column in frame.schema)
        for name, frame in zip(operator.inputs, inputs, strict=True)
    )


def _first_line(error: Exception) -> str:
    line = str(error).strip().split("\n", maxsplit=1)[0]
    return re.sub(r"^\[[A-Z_.]+\] | SQLSTATE: \w+", "", line).rstrip(".;: ")
