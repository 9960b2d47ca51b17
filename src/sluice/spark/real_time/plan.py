"""Which pipelines can run in real-time mode, and the one query that does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.errors import BadInputError
from sluice.spark.kafka.rows import decoded, encoded
from sluice.spark.pipeline.compile import CompiledPipeline, Query
from sluice.spark.pipeline.definition import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

READ = "read"
"""The stage that reads: one task per partition of the topic, whatever is asked for."""
STATE = "state"
"""The stage that keeps state: one task per state partition. Spark does not rewrite the state of real-time queries."""


@dataclass(frozen=True)
class RealTimePlan:
    """The operators in a row between two topics."""

    source: str
    source_schema: StructType
    queries: tuple[Query, ...]
    sink: str
    avro: Mapping[str, str]

    @property
    def name(self) -> str:
        """Of the stage that does the work."""
        joined = "+".join(query.name for query in self.queries)
        return joined if joined not in (READ, STATE) else f"{joined}-work"

    @property
    def stateful(self) -> bool:
        return any(query.stateful for query in self.queries)

    @property
    def state_partitions(self) -> int | None:
        """Null without state."""
        return next((query.first.state_partitions for query in self.queries if query.stateful), None)

    @property
    def min_parallelism(self) -> int:
        return max(query.min_parallelism for query in self.queries)

    @property
    def max_parallelism(self) -> int | None:
        highs = [query.max_parallelism for query in self.queries if query.max_parallelism is not None]
        return max(min(highs), self.min_parallelism) if highs else None

    def build(self, messages: DataFrame, parallelism: int) -> DataFrame:
        """From messages to messages, spread evenly over so many tasks, and by Spark over those that keep state."""
        frame = decoded(messages.repartition(parallelism), self.source_schema, self.avro.get(self.source))
        for query in self.queries:
            frame = query.build([frame])
        return encoded(frame, self.avro.get(self.sink))


def plan_real_time(pipeline: Pipeline, compiled: CompiledPipeline) -> RealTimePlan:
    """Raises BadInputError with the reason where a pipeline does not qualify."""
    problem = _problem(pipeline, compiled.queries)
    if problem is not None:
        raise BadInputError(f"pipeline {pipeline.name!r} cannot run in real-time mode: {problem}")
    (source,) = pipeline.sources
    sink = compiled.queries[-1].output
    return RealTimePlan(
        source=source,
        source_schema=compiled.source_schemas[source],
        queries=compiled.queries,
        sink=sink,
        avro=pipeline.avro_schemas(),
    )


def _problem(pipeline: Pipeline, queries: Sequence[Query]) -> str | None:
    if len(pipeline.sources) > 1:
        return f"it has {len(pipeline.sources)} sources ({', '.join(pipeline.sources)}), and one is possible"
    (source,) = pipeline.sources.values()
    if source.read is not None:
        return f"source {source.name!r} is a function; only topics are read in it"
    read = source.name
    for query in queries:
        if query.inputs != (read,):
            return f"operator {query.name!r} branches off; the operators must be in a row"
        read = query.output
    stateful = [query for query in queries if query.stateful]
    if len(stateful) > 1:
        return f"operators {stateful[0].name!r} and {stateful[1].name!r} both keep state, and one may"
    for query in stateful:
        if query.output_mode != "update":
            return (
                f"operator {query.name!r} has output_mode={query.output_mode!r}; every update is emitted at once, "
                "so it must be 'update'"
            )
    if queries[-1].sink is not None:
        return f"sink {queries[-1].output!r} is no topic"
    return None
