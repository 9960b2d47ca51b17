"""Private calls about the plans of queries; see `sluice.spark.internals`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sluice.spark.internals import jvm_of, needs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def analyzed_plan(frame: DataFrame) -> Any:
    """The analyzed logical plan, for `check_streaming` and `keeps_state`.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    with needs(frame.sparkSession, "analyzed plan"):
        return frame._jdf.queryExecution().analyzed()


def check_streaming(spark: SparkSession, plan: Any, output_mode: str) -> None:
    """What Spark checks when a query starts, raised as its `AnalysisException`.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    with needs(spark, "UnsupportedOperationChecker"):
        jvm = jvm_of(spark)
        mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())()
        getattr(jvm, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker").checkForStreaming(plan, mode)


def keeps_state(plan: Any, stateful_nodes: Collection[str]) -> bool:
    """Whether a streaming node of these names, or a join of two streams, is in the plan.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    found = plan.children()
    children = [found.apply(index) for index in range(found.size())]
    name = plan.nodeName()
    if plan.isStreaming() and name in stateful_nodes:
        return True
    if name == "Join" and all(child.isStreaming() for child in children):
        return True
    return any(keeps_state(child, stateful_nodes) for child in children)
