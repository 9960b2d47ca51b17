"""q1, q5 and q8 over a real broker: rescales, `kill -9` of drivers and of the broker; the output must stay exact.

python -m benchmarks.kafka_exactly_once [--short] [--query q5] [--seed 1]

A broker is started for it. Every query runs in driver after driver, each killed at a random moment while records flow
and operators are rescaled; in some of their lives the broker is killed too and comes back. The last driver runs to its
end. A consumer that knows nothing of sluice then reads the committed output, which must equal the answer of another
engine over the same input, record by record. Every query takes four to seven minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from sluice.testing.exactly_once.broker_lives import Lives, run_lives
from sluice.testing.kafka import local_broker

QUERIES = ("q1", "q5", "q8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="one death of a driver and one of the broker per query")
    parser.add_argument("--query", choices=QUERIES, help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    kills, restarts, rescales = (1, 1, 4) if arguments.short else (5, 2, 20)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "broker"
        with local_broker(home):
            for query in [arguments.query] if arguments.query else QUERIES:
                lives = Lives(
                    query=query,
                    events=30_000,
                    rescales=rescales,
                    kills=kills,
                    broker_restarts=restarts,
                    seed=arguments.seed,
                )
                done = run_lives(lives, Path(folder) / query, home, say=lambda line: print(line, flush=True))
                print(
                    f"{query}: {done} rescales, {restarts} restarts of the broker, {kills} drivers killed: "
                    "output exact, lost 0, twice 0",
                    flush=True,
                )


if __name__ == "__main__":
    main()
