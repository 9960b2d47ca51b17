"""Every standard query on Spark against another engine's answer from the same records, while parallelism changes.

python -m benchmarks.query_answers [--short] [QUERY ...]

200,000 events each (6,000 with --short), all operators rescaled six times at random. Answers must be equal
as multisets of rows, and every record read exactly once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from sluice.errors import SluiceError
from sluice.spark.session import open_session
from sluice.testing.answers.check import check_query
from sluice.testing.answers.reference import ANSWERS

EVENTS, SHORT_EVENTS = 200_000, 6_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", nargs="*", metavar="QUERY", help="only these")
    parser.add_argument("--short", action="store_true", help="fewer events and rescales")
    arguments = parser.parse_args()
    spark = open_session("query answers", threads=12).spark
    failed = 0
    print(f"{'query':<12}{'events':>10}{'results':>10}{'rescales':>10}{'seconds':>9}  answer", flush=True)
    for answer in ANSWERS:
        if arguments.queries and answer.query not in arguments.queries:
            continue
        events = SHORT_EVENTS if arguments.short else EVENTS
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                found = check_query(
                    answer, spark, Path(folder), events=events, rescales=3 if arguments.short else 6, seed=1
                )
            except (AssertionError, SluiceError) as error:
                failed += 1
                print(f"{answer.query:<12}{events:>10,}{'':>29}  DIFFERS: {str(error).strip()[:300]}", flush=True)
                continue
        counts = f"{found.events:>10,}{found.results:>10,}{found.rescales:>10}"
        print(f"{answer.query:<12}{counts}{found.elapsed_s:>9.0f}  equal", flush=True)
    spark.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
