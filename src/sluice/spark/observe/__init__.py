"""From what Spark reports to an observation: one definition of every metric, for pipelines and for `attach`.

`events` reads Spark's JSON, `window` puts whole batches together, `metrics` computes from them: all three are pure.
`probe` asks Spark for the stages.
"""

from sluice.spark.observe.events import Batch, BatchStage, read_batch, read_stages, records_per_topic
from sluice.spark.observe.metrics import make_observation, operator_metrics
from sluice.spark.observe.window import Backlog, BatchLog, BatchSpan, QueryWindow, backlog_of, slot_seconds

__all__ = [
    "Backlog",
    "Batch",
    "BatchLog",
    "BatchSpan",
    "BatchStage",
    "QueryWindow",
    "backlog_of",
    "make_observation",
    "operator_metrics",
    "read_batch",
    "read_stages",
    "records_per_topic",
    "slot_seconds",
]
