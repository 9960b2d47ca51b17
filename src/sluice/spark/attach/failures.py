"""Why something could not be seen: the driver does not answer, the application has ended, or the fault is ours."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING

from sluice.spark import internals
from sluice.spark.attach.log import line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("sluice")


def report_failure(spark: SparkSession, error: Exception) -> bool:
    """Log what it was, once; whether the application has ended."""
    if isinstance(error, internals.ApplicationEndedError) or internals.has_ended(spark):
        log.info("%s", line({"event": "application_ended"}))
        return True
    if internals.is_unanswered(error):
        log.warning("%s", line({"event": "unanswered", "error": internals.root_cause(error)}))
    else:
        described = f"{type(error).__name__}: {internals.root_cause(error)}"
        log.error("%s", line({"event": "observation_failed", "error": described}))
        log.debug("%s", "".join(traceback.format_exception(error)))
    return False
