"""The reason in what Spark once printed, stacks shortened."""

from __future__ import annotations

import pytest

from sluice.spark.causes import last_error, root_cause

PROXY = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
WORKER = """pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "job.py", line 32, in picky
    raise ValueError("no")
"""
QUERY = """
=== Streaming Query ===
Identifier: [id = f5fc7978, runId = 937b8312]
Current Available Offsets: {org.apache.spark.sql.Something: not an error}
"""
TASK = (
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 6.0 failed 4 times, "
    "most recent failure: Lost task 0.3 in stage 6.0 (TID 25) (10.0.0.1 executor driver): "
)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (f"{PROXY}{WORKER}ValueError: six is\nright out\n{QUERY}", "ValueError: six is right out"),
        (f"{PROXY}{WORKER}KeyError: 'k'\n{QUERY}", "KeyError: 'k'"),
        (f"{PROXY}{WORKER}AssertionError\n{QUERY}", "AssertionError"),
        (f"{PROXY}{WORKER}mine.Oops: wrapped: it\n{QUERY}", "Oops: wrapped: it"),
        (f"{PROXY}OSError: [Errno 28] No space left on device\n{QUERY}", "OSError: [Errno 28] No space left on device"),
        (
            f"{PROXY}pyspark.errors.exceptions.captured.ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. "
            f"SQLSTATE: 22012\n== SQL (line 1, position 1) ==\nkey / 0\n^^^^^^^\n\n{QUERY}",
            "ArithmeticException: [DIVIDE_BY_ZERO] Division by zero.",
        ),
        (
            f"{PROXY}py4j.protocol.Py4JJavaError: An error occurred while calling o515.parquet.\n"
            f"{TASK}java.io.IOException: Mkdirs failed\n\tat org.apache.spark.rdd.RDD.iterator(RDD.scala:338)\n\n"
            f"Driver stacktrace:\n\tat a.X\nCaused by: java.io.IOException: Mkdirs failed\n\tat a.B\n{QUERY}",
            "IOException: Mkdirs failed",
        ),
        (
            f"{PROXY}py4j.protocol.Py4JJavaError: An error occurred while calling o7.parquet.\n"
            f"{TASK}org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat a.B\n"
            f"Caused by: java.io.EOFException\n\tat a.B\n{QUERY}",
            "SparkException: Python worker exited unexpectedly (crashed)",
        ),
        (
            "AnalysisException: [NO_SUCH] no column x. SQLSTATE: 42703;\n'Project",
            "AnalysisException: [NO_SUCH] no column x.",
        ),
        ("", "no message"),
    ],
)
def test_the_root_is_found_and_not_cut_off(said: str, cause: str) -> None:
    assert root_cause(said) == cause


def test_the_longer_stack_has_the_root() -> None:
    stack = "org.apache.spark.SparkException: failed\n\tat a.B\nCaused by: java.io.IOException: disk full\n\tat a.C\n"
    assert root_cause(f"StreamingQueryException: Failed to commit\n{QUERY}", stack) == "IOException: disk full"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (
            "Spark Command: java\n=====\nError: Could not create the Java Virtual Machine.\n",
            "Error: Could not create the Java Virtual Machine.",
        ),
        (
            "26/01/01 INFO Master: up\n26/01/01 ERROR Worker: All masters are unresponsive\n26/01/01 INFO bye\n",
            "26/01/01 ERROR Worker: All masters are unresponsive",
        ),
        ("one\ntwo\n\n", "two"),
        ("", None),
    ],
)
def test_the_last_error_of_a_log(log: str, line: str | None) -> None:
    assert last_error(log) == line
