"""The private calls of Spark that topics need; see `sluice.spark.internals`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.spark.internals import Json, context_of, jvm_of, needs
from sluice.spark.internals.placed import compile_java
from sluice.spark.internals.plans import analyzed_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PYTHON_PATTERN = "PYTHON_UDF"
PASSING = ("Filter", "EventTimeWatermark")
"""Nodes that hand on the columns of their only child as they are."""
CHOOSING = ("Project", "Aggregate")
"""Nodes that hand on nothing but what their expressions say."""


def ship_classes(spark: SparkSession, sources: Sequence[Path], probe: str, folder: Path) -> None:
    """Make the driver and all executors find classes of ours; `folder` keeps them. Seen on Spark 4.3.0."""
    jar = compile_java(spark, sources, probe, folder)
    context = context_of(spark)
    if not context.isLocal():
        context.addJar(str(jar))


def use_planner(spark: SparkSession, class_name: str, planner: object) -> None:
    """Hand a function to the static method `use` of a class that was loaded before. Seen on Spark 4.3.0."""
    from pyspark import java_gateway

    with needs(spark, "callbacks from the JVM"):
        gateway: Any = java_gateway
        gateway.ensure_callback_server_started(spark.sparkContext._gateway)
        found: Any = jvm_of(spark)
        for name in class_name.split("."):
            found = getattr(found, name)
        found.use(planner)


def runs_python(frame: DataFrame) -> bool:
    """Whether functions in Python are part of the query's plan. Seen on Spark 4.3.0."""
    with needs(frame.sparkSession, "tree patterns"):
        patterns: Any = jvm_of(frame.sparkSession).org.apache.spark.sql.catalyst.trees.TreePattern
        return bool(analyzed_plan(frame).containsPattern(patterns.withName(PYTHON_PATTERN)))


def last_progress(query: StreamingQuery) -> Json | None:
    """Of the last batch, at once: listeners hear of it when the next one may have begun. Seen on Spark 4.3.0."""
    found: Any = query._jsq.lastProgress()
    return None if found is None else json.loads(found.json())


def columns_used(frame: DataFrame, option: str) -> dict[str, frozenset[str]]:
    """Which columns of its streaming sources a query depends on, by the value of an option that tells sources apart.

    The optimiser has put what chooses columns as far down as it can. A source without an entry may need all of its
    columns. Seen on Spark 4.3.0.
    """
    with needs(frame.sparkSession, "optimizer"):
        state: Any = frame.sparkSession._jsparkSession.sessionState()
        plan = state.optimizer().execute(analyzed_plan(frame))
        found: dict[str, frozenset[str] | None] = {}
        for source, used in _used(plan, None):
            name = source.extraOptions().get(option)
            names = (
                None if used is None else frozenset(one.name() for one in _each(source.output()) if _id(one) in used)
            )
            before = found.get(name, frozenset())
            found[name] = None if names is None or before is None else before | names
    return {name: names for name, names in found.items() if name is not None and names is not None}


def _used(node: Any, wanted: frozenset[int] | None) -> Iterator[tuple[Any, frozenset[int] | None]]:
    """Every streaming source below the node with the attributes that are used of it; null stands for all."""
    kind = node.nodeName()
    if kind == "StreamingRelationV2":
        yield node, wanted
        return
    below: frozenset[int] | None = None
    if kind in CHOOSING or (kind in PASSING and wanted is not None):
        below = frozenset(_id(one) for one in _each(node.references().toSeq()))
        below |= wanted if kind in PASSING and wanted is not None else frozenset()
    for child in _each(node.children()):
        yield from _used(child, below)


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]
