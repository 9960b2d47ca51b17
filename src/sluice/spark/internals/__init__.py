"""Every private call of Spark, and nothing else: what the rest of sluice needs that PySpark does not offer.

A file for each thing they are about; here is what all of them share.

Each function names the versions of Spark it was seen working on. Where another version lacks a call, a function either
has a fallback, named in its docstring, or raises `MissingCallError`, which names the version and the call. A session
that has been stopped raises `ApplicationEndedError`. What Spark itself raises passes through.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluice.errors import SluiceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Json = dict[str, Any]
DRIVER = "driver"
"""Its id among those of the executors."""


class MissingCallError(SluiceError):
    """This version of Spark lacks a private call that sluice needs."""


class ApplicationEndedError(SluiceError):
    """The session's application has been stopped."""


@contextmanager
def needs(spark: SparkSession, call: str) -> Iterator[None]:
    """Turn a call that does not exist into `MissingCallError`; Py4J has three ways to say so."""
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

    try:
        yield
    except (Py4JJavaError, Py4JNetworkError):
        raise
    except (AttributeError, TypeError, Py4JError) as error:
        if isinstance(error, Py4JError) and "does not exist" not in str(error):
            raise
        raise MissingCallError(f"Spark {spark.version} has no {call}, which sluice needs: {error}") from error


def is_session(spark: object) -> bool:
    """Whether it is a SparkSession at all, of Spark Connect or not.

    Seen on Spark 4.3.0.
    """
    return hasattr(type(spark), "readStream")


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect, which has no driver in this process.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    return not hasattr(spark, "_jsparkSession")


def has_ended(spark: SparkSession) -> bool:
    """Whether the application was stopped, here or in its JVM; not known of one that does not answer: false.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    from py4j.protocol import Py4JError

    context: Any = spark.sparkContext._jsc
    if context is None:
        return True
    try:
        return bool(context.sc().isStopped())
    except (Py4JError, OSError):
        return False


def is_unanswered(error: BaseException) -> bool:
    """Whether an error came from the JVM or the connection to it, rather than from code in Python."""
    from py4j.protocol import Py4JError

    return isinstance(error, Py4JError | ConnectionError | TimeoutError)


def root_cause(error: BaseException) -> str:
    """What went wrong at the root of a Java exception, in one line and without its stack."""
    cause: Any = getattr(error, "java_exception", None)
    if cause is None:
        return " ".join(str(error).split())[:300]
    while cause.getCause() is not None:
        cause = cause.getCause()
    return " ".join(str(cause.toString()).split())[:300]


def context_of(spark: SparkSession) -> Any:
    context: Any = spark.sparkContext._jsc
    if context is None:
        raise ApplicationEndedError("the Spark application has ended")
    return context.sc()


def jvm_of(spark: SparkSession) -> Any:
    return spark._jvm


def jvm_process(spark: SparkSession) -> subprocess.Popen[bytes] | None:
    """The driver's JVM; null where something else started it. It ends when its input does. Seen on Spark 4.3.0."""
    return getattr(spark.sparkContext._gateway, "proc", None)
