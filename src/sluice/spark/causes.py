"""The reason in the long text of a failure of Spark: pure, so that it can be tested on what Spark once printed.

A failed task arrives as a Python traceback inside a Java exception inside a Python traceback. Java prints the root
last, after `Caused by:`; Python prints what was raised after the frames. So the last exception in the text is the
root, except where it only wraps the text of another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

TRACEBACK = "Traceback (most recent call last):"
QUERY_SECTION = "=== Streaming Query ==="
"""Spark appends offsets and the plan of the query."""
_JAVA_CLASS = r"(?:[a-z_][\w$]*\.)+[A-Z][\w$]*"
_JAVA = re.compile(rf"^(?:: )?(?:Caused by: )?({_JAVA_CLASS}: .*)$")
"""Only with a message: without one, what it caused says more."""
_JAVA_INSIDE = re.compile(rf"\): ({_JAVA_CLASS}: .*)$")
"""`Lost task 0.1 in stage 6.0 (TID 25) (host executor driver): java.io.IOException: ...`"""
_WRAPPERS = ("Py4JJavaError", "Py4JException", "PythonException")
_PACKAGE = re.compile(r"^(?:[A-Za-z_][\w$]*\.)+(?=[A-Z])")
_LOGGED = re.compile(r"\b(?:ERROR|FATAL)\b|Error: |Exception: |Exception in thread")


def root_cause(message: str, stack: str = "") -> str:
    """The exception that began it, with its whole message on one line; `stack` is a longer text of the same failure."""
    text = f"{message.split(QUERY_SECTION)[0]}\n\n{stack.split(QUERY_SECTION)[0]}"
    found = [cause for cause in _exceptions(text.splitlines()) if not cause.startswith(_WRAPPERS)]
    if found:
        return found[-1]
    return next((_one_line(line, ()) for line in text.splitlines() if line.strip()), "no message")


def last_error(log: str) -> str | None:
    """The last line of a program's log that names an error, or else its last line; None for an empty one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if _LOGGED.search(line)), lines[-1] if lines else None)


def _exceptions(lines: Sequence[str]) -> Iterator[str]:
    in_traceback = False
    for number, line in enumerate(lines):
        if TRACEBACK in line:
            in_traceback = True
        elif in_traceback and line and not line.startswith((" ", "\t")):
            in_traceback = False
            yield _one_line(line, lines[number + 1 :])
        elif not in_traceback and (java := _JAVA_INSIDE.search(line) or _JAVA.match(line)):
            yield _one_line(java.group(1), lines[number + 1 :])


def _one_line(first: str, following: Sequence[str]) -> str:
    """A message may have several lines; a blank or indented line, or another exception, ends it."""
    parts = [first.strip()]
    for line in following:
        if "SQLSTATE:" in parts[-1] or not line.strip() or line.startswith((" ", "\t", ": ", "Caused by: ")):
            break
        parts.append(line.strip())
    message = re.sub(r"\s*SQLSTATE: \w+;?", "", " ".join(parts))
    return _PACKAGE.sub("", message)
