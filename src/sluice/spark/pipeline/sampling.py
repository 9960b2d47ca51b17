"""Sampling instance sizes on Spark: one operator in a process of its own, given cores and memory of that size.

The sampling instance runs beside the job, on a copy of the operator's input, and throws its output away: nothing is
lost or repeated, whatever it does. Cores are given by CPU affinity and by Spark's task threads, memory by the heap.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import BadInputError, SluiceError
from sluice.model import InstanceSize
from sluice.spark.causes import last_error
from sluice.spark.pipeline.specs import OperatorSpec

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_MEMORY_MB = 512.0
"""Spark refuses to start with less than about 470 MB."""
FILES = 4_000
END_GRACE_S = 10.0


class SparkSampling:
    """A `SamplingTarget` for one operator; `records` is a piece of each of its inputs, read over and over.

    A window is a micro-batch of `files_per_batch` such pieces, each a task. Only whole cores can be pinned.
    """

    def __init__(self, operator: OperatorSpec, records: Mapping[str, pa.Table], *, files_per_batch: int = 4) -> None:
        missing = sorted(set(operator.inputs) - set(records))
        if missing:
            raise BadInputError(f"operator {operator.name!r}: sampling needs records for its input {missing[0]!r}")
        self._operator = operator
        self._records = records
        self._files_per_batch = files_per_batch

    def rates(self, size: InstanceSize) -> Iterator[float]:
        cores = self._cores(size)
        with tempfile.TemporaryDirectory(prefix="sluice-sampling-") as name:
            folder = Path(name)
            self._prepare(folder)
            command = [sys.executable, "-m", "sluice.spark.pipeline.sampling_instance", str(folder)]
            command += [str(len(cores)), str(int(size.memory_mb)), str(self._files_per_batch)]
            with open(folder / "errors.txt", "w") as errors:
                instance = subprocess.Popen(
                    command,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    preexec_fn=lambda: os.sched_setaffinity(0, cores),
                    start_new_session=True,
                )
            try:
                assert instance.stdout is not None
                for line in instance.stdout:
                    yield float(json.loads(line)["rate"])
                error = last_error((folder / "errors.txt").read_text()) or "no message"
                raise SluiceError(f"the sampling instance ended: {error}")
            finally:
                _end(instance)

    def _cores(self, size: InstanceSize) -> set[int]:
        here = sorted(os.sched_getaffinity(0))
        if size.cpu_cores != math.floor(size.cpu_cores) or size.cpu_cores > len(here):
            raise BadInputError(
                f"size {size.name!r}: can pin 1 to {len(here)} whole cores here, got {size.cpu_cores:g}"
            )
        if size.memory_mb < LEAST_MEMORY_MB:
            raise BadInputError(f"size {size.name!r}: Spark needs {LEAST_MEMORY_MB:g} MB, got {size.memory_mb:g}")
        return set(here[: int(size.cpu_cores)])

    def _prepare(self, folder: Path) -> None:
        import pyarrow.parquet as pq
        from pyspark import cloudpickle

        (folder / "operator.pickle").write_bytes(cloudpickle.dumps(self._operator))  # type: ignore[no-untyped-call]
        for name in self._operator.inputs:
            inputs = folder / "inputs" / name
            inputs.mkdir(parents=True)
            first = inputs / "0.parquet"
            pq.write_table(self._records[name], first)
            for number in range(1, FILES):
                os.link(first, inputs / f"{number}.parquet")


def _end(instance: subprocess.Popen[str]) -> None:
    """The instance ends itself when its output is closed; its whole session, the JVM included, if it does not."""
    instance.terminate()
    try:
        instance.wait(END_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(instance.pid, 9)
        instance.wait()
    if instance.stdout is not None:
        instance.stdout.close()
