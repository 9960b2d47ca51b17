"""Why an operator's query ended by itself, and whether starting it again can help."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sluice.errors import SluiceError
from sluice.spark.causes import root_cause

PAUSES_S = (1.0, 2.0, 4.0)
"""Before each restart in a row; a finished batch begins anew."""
NO_PYTHON = "Python worker failed to connect back"
"""Spark gives a Python process ten seconds to start, which a busy machine exceeds again and again."""
RESTARTS_WITHOUT_PYTHON = 12
FINAL = re.compile(
    r"^(AnalysisException|ExtendedAnalysisException|ParseException|BadInputError|CorruptTopicError)\b"
    r"|SCHEMA_NOT_COMPATIBLE|SchemaNotCompatible|_MISMATCH_IN_STATE_METADATA|INCOMPATIBLE_"
)
"""A plan, a schema or a damaged file is the same at the next start."""


@dataclass(frozen=True)
class Failure:
    """`cause` is one line, `details` everything that Spark and Python said."""

    cause: str
    details: str

    @staticmethod
    def of(error: BaseException) -> Failure:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        if not isinstance(error, (PySparkException, Py4JError)):
            text = f"{type(error).__name__}: {error}"
            return Failure(text, text)
        # the error of a streaming query has only its own stack; the one of its cause goes down to the root
        stack = str(getattr(getattr(error, "_cause", None), "_stackTrace", ""))
        message = f"{type(error).__name__}: {error}"
        cause = root_cause(message, stack)
        return Failure(cause, message if cause == root_cause(message) else f"{message}\n\n{stack}")

    def pause_s(self, restarts: int) -> float | None:
        """How long to wait before the next start, after so many restarts in a row; None if none can help."""
        without_python = NO_PYTHON in self.details
        if FINAL.search(self.cause) and not without_python:
            return None
        if restarts >= (RESTARTS_WITHOUT_PYTHON if without_python else len(PAUSES_S)):
            return None
        return PAUSES_S[min(restarts, len(PAUSES_S) - 1)]


@dataclass(frozen=True, kw_only=True)
class Restart:
    """A query that failed and was started again from its checkpoint."""

    operator: str
    unix_s: float
    cause: str
    in_a_row: int
    """1 for the first since a batch was finished."""


class OperatorFailedError(SluiceError):
    """An operator's query ended by itself for good; `details` has the whole traceback."""

    def __init__(self, operator: str, failure: Failure, restarts: int = 0) -> None:
        self.operator = operator
        self.details = failure.details
        tries = f" (also after {restarts} restart{'s' if restarts > 1 else ''})" if restarts else ""
        super().__init__(f"operator {operator!r} failed: {failure.cause}{tries}")
