"""Runs a PySpark program as it is, with `attach`: spark-submit [options] run.py job.py [arguments].

spark-submit copies this file to wherever the driver runs, so it imports nothing but the standard library before it
knows that sluice is installed there.
"""

from __future__ import annotations

import io
import os
import sys
from types import ModuleType, TracebackType

BAD_INPUT = 2


def main(words: list[str]) -> None:
    if not words:
        _refuse("which program? usage: spark-submit [options] run.py job.py [arguments]")
    program = words[0]
    try:
        with io.open_code(os.path.abspath(program)) as file:
            source = file.read()
    except OSError as error:
        _refuse(f"cannot read the program {program!r}: {error.strerror}")
    # as Python itself does for a program
    sys.argv[:] = words
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    attach_to_sessions()
    run_as_main(source, program)


def attach_to_sessions() -> None:
    try:
        from pyspark.sql import SparkSession

        from sluice.spark.attach.hook import SessionHook
    except ImportError as error:
        print(f"sluice: not attached, the program goes on: {sys.executable}: {error}", file=sys.stderr)
        return
    SessionHook().install(SparkSession)


def run_as_main(source: bytes, program: str) -> None:
    """What the program raises is shown without the frames of this file, as if Python had started it."""
    module = ModuleType("__main__")
    module.__file__ = program
    sys.modules["__main__"] = module
    show = sys.excepthook

    def show_frames_of_program(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename != program:
            trace = trace.tb_next
        show(kind, error.with_traceback(trace), trace)

    sys.excepthook = show_frames_of_program
    exec(compile(source, program, "exec"), module.__dict__)


def _refuse(message: str) -> None:
    print(f"sluice: {message}", file=sys.stderr)
    sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main(sys.argv[1:])
