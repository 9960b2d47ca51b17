"""`kill -9` of a driver again and again, at random moments and at the worst ones; the output must stay exact.

python -m benchmarks.spark_kills [--short] [--job NAME]

Every driver is killed with its JVM: at any time, just before and just after a batch becomes visible in a topic, while a
topic is trimmed, while an operator's state is rewritten. Another one goes on in the same folder.
The last runs to its end and compares the whole output with an independent computation in pandas.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

from sluice.testing.exactly_once.driver import MOMENTS
from sluice.testing.exactly_once.kills import kill_and_finish


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="two deaths instead of ten")
    parser.add_argument("--job", default="windowed-count", help="a job of sluice/testing/exactly_once/jobs.py")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    wanted = 2 if arguments.short else 10
    deadly = [moment for moment in MOMENTS if moment != "never"]
    moments = list(itertools.islice(itertools.cycle(deadly), wanted))
    with tempfile.TemporaryDirectory() as folder:
        fates = kill_and_finish(Path(folder), arguments.job, moments, seed=arguments.seed, say=print)
    print(f"{fates.count('killed')} drivers killed, output exact: nothing lost, nothing twice")


if __name__ == "__main__":
    main()
