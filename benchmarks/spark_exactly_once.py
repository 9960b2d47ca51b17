"""Random rescales while records flow, live and by rewriting the state: is the output that of a batch computation?

For every job of the tests (filter-map, running count, windowed count, session window, deduplication, stream-stream
join): so many rescales of all operators to random parallelisms, then every row of the output is compared with what
pandas makes of the same records. Prints rescales, records, lost and repeated ones, and how long operators stood still.

    python -m benchmarks.spark_exactly_once            # 20 rescales per job and kind
    python -m benchmarks.spark_exactly_once --short    # 3 of each
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sluice.spark.pipeline.runtime import Rescale, RescaleResult, Runtime
from sluice.spark.session import open_session
from sluice.testing.exactly_once.jobs import JOBS, ReferenceJob
from sluice.testing.exactly_once.rescaling import run_with_rescales

Results = dict[str, RescaleResult]
RECORDS_PER_RESCALE = 500
KINDS: tuple[Rescale, ...] = ("live", "repartition")


@contextmanager
def recorded_rescales() -> Iterator[list[Results]]:
    found: list[Results] = []
    original: Callable[..., Results] = Runtime.rescale

    def recording(*args: Any, **options: Any) -> Results:
        found.append(original(*args, **options))
        return found[-1]

    Runtime.rescale = recording  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Runtime.rescale = original  # type: ignore[method-assign]


def measure(job: ReferenceJob, kind: Rescale, rescales: int, seed: int, spark: SparkSession) -> str:
    with tempfile.TemporaryDirectory(prefix="sluice-", ignore_cleanup_errors=True) as folder:
        with recorded_rescales() as rescaled:
            engine = run_with_rescales(
                job,
                spark,
                Path(folder),
                records=RECORDS_PER_RESCALE * rescales,
                rescales=rescales,
                how=lambda _number: kind,
                seed=seed,
            )
        count = engine.stop()
    stood_s = [max((result.standstill_s for result in found.values()), default=0.0) for found in rescaled]
    standstill = f"{statistics.median(stood_s):.2f} / {max(stood_s):.2f}"
    figures = f"{len(rescaled):8} {count.processed:8} {count.lost:5} {count.duplicated:5}"
    return f"{job.name:16} {kind:12} {figures} {standstill:>18}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="3 rescales of each kind instead of 20")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--job", action="append", choices=[job.name for job in JOBS], help="only this one")
    options = parser.parse_args()
    rescales = 3 if options.short else 20
    spark = open_session("exactly once", threads=16).spark
    print("job              kind         rescales  records  lost twice  standstill s: median / max; output as pandas'")
    for job in JOBS:
        if not options.job or job.name in options.job:
            for kind in KINDS:
                print(measure(job, kind, rescales, options.seed, spark), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
