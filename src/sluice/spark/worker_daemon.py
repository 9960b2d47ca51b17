"""Spark's Python daemon with everything a worker needs imported before it forks: `spark.python.daemon.module`.

Spark's own daemon forks first, so every worker imports pyspark, pyarrow and pandas for itself: half a second of CPU and
50 MB for each slot. Here the children share one copy. Forking is safe only without other threads, so the libraries are
set to start none; if one does all the same, the daemon begins anew without the imports, as Spark's own.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys

PRELOADED = (
    "pyarrow.parquet",
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "sluice.spark.topic.steered",
)
NO_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
SKIP_PRELOAD = "SLUICE_WORKERS_IMPORT_THEMSELVES"


def prefer_installed_pyspark() -> None:
    """Spark puts pyspark as a zip of sources first on the path; the installed one has its byte code ready."""
    installed = [entry for entry in sys.path if not entry.endswith("pyspark.zip")]
    if any(os.path.isdir(os.path.join(entry, "pyspark")) for entry in installed):
        sys.path[:] = installed


def preload() -> None:
    os.environ.update(NO_THREADS)
    prefer_installed_pyspark()
    for module in PRELOADED:
        importlib.import_module(module)
    gc.collect()
    # a worker collects garbage after every task; frozen, what is shared is neither walked nor copied
    gc.freeze()


def thread_count() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except FileNotFoundError:  # not Linux: nothing to be sure of
        return 2


def main() -> None:
    if SKIP_PRELOAD not in os.environ:
        preload()
        if thread_count() > 1:
            environment = {**os.environ, SKIP_PRELOAD: "1"}
            os.execve(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]], environment)
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
