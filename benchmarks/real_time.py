"""Real-time mode against micro-batches: latency end to end, gaps of a rescale each way, what was lost or came twice.

python -m benchmarks.real_time [--seconds 30] [--rate 500] [--query q1]

A broker is started for it. `q1` converts every record, `count` counts them per key and window, each update emitted at
once. Both modes run the same query in the same session, one after the other, under the same steady load.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from sluice.testing import real_time
from sluice.testing.kafka import local_broker

QUERIES = ("q1", "count")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="of steady load that are measured")
    parser.add_argument("--rate", type=float, default=500.0, help="records/s")
    parser.add_argument("--query", choices=QUERIES, help="only this one")
    arguments = parser.parse_args()
    bad = 0
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        local_broker(Path(folder) / "broker") as bootstrap,
    ):
        for query in [arguments.query] if arguments.query else QUERIES:
            words = [bootstrap, str(Path(folder) / query), query, str(arguments.seconds), str(arguments.rate)]
            words += real_time.MODES
            done = subprocess.run(
                [sys.executable, "-m", real_time.__name__, *words], stdout=subprocess.PIPE, text=True, check=True
            )
            for line in done.stdout.splitlines():
                found = json.loads(line)
                latency = f"p50 {found['p50_ms']:8.1f} ms, p99 {found['p99_ms']:8.1f} ms"
                print(
                    f"{found['query']:6} {found['mode']:12} {latency}, {found['records']} records, "
                    f"{found['results']} results, "
                    f"lost {found['lost']}, twice {found['twice']}, "
                    f"gaps {found['gaps_s'] or 'none'}",
                    flush=True,
                )
                bad += found["lost"] + (found["twice"] if found["mode"] == "real-time" else 0)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
