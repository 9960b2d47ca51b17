"""A client of Spark Connect whose server runs with `sluice submit`: executors 1 -> 3 -> 1 with DS2.

python -m benchmarks.attach_connect [--client PYTHON]

The server is a PySpark program with Spark's Connect plugin, so its driver has the hook; the client is another process
that has a streaming query and no sluice. PYTHON must have pyspark[connect]. Records are counted in the client's files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sluice.errors import SluiceError
from sluice.journal.file import read_runs
from sluice.spark.cluster.processes import end, free_port
from sluice.testing.step_load import connect_client, connect_server
from sluice.testing.step_load.feed import LineFeed
from sluice.testing.step_load.job import local_cluster

LOW, HIGH, MOST = 10.0, 220.0, 3
PATIENCE_S = 180.0
PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", default=sys.executable, help="a Python with pyspark[connect]")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        with local_cluster(root / "cluster", slots=2) as cluster:
            lost, repeated = measure(root, cluster.master_url, arguments.client)
    sys.exit(1 if lost or repeated else 0)


def measure(root: Path, master: str, client_python: str) -> tuple[int, int]:
    port, ready, stop = free_port(), root / "ready", root / "stop"
    feed = LineFeed(root / "in", LOW)
    feed.start()
    with open(root / "server.log", "w") as server_log, open(root / "client.log", "w") as client_log:
        server = subprocess.Popen(_server(root, master, port, ready, stop), stdout=server_log, stderr=server_log)
        started = [server]
        try:
            wait(ready.exists, "server", server, root / "server.log")
            command = [client_python, connect_client.__file__, f"sc://127.0.0.1:{port}", str(root)]
            client = subprocess.Popen(command, stdout=client_log, stderr=client_log)
            started.append(client)

            def reach(executors: int, what: str) -> None:
                took_s = wait(lambda: _seen(root) == ("client", executors), what, client, root / "client.log")
                print(f"{what}: {took_s:.1f} s", flush=True)

            reach(1, "query of the client on one executor")
            feed.records_per_s = HIGH
            reach(MOST, f"load step to {MOST} executors")
            feed.records_per_s = LOW
            reach(1, "load step down to one executor")
            feed.stop()
            (root / "end").touch()
            if client.wait(timeout=PATIENCE_S):
                raise SluiceError((root / "client.log").read_text()[-1000:])
        finally:
            # the server last: a client waits for it
            (root / "end").touch()
            end(*(process.pid for process in started[1:]), patience_s=5)
            stop.touch()
            server.wait(timeout=PATIENCE_S)
    lines = [line for part in (root / "out").glob("part-*") for line in part.read_text().splitlines()]
    lost, repeated = feed.written - len(set(lines)), len(lines) - len(set(lines))
    print(f"{feed.written} records, {lost} lost, {repeated} repeated")
    return lost, repeated


def _server(root: Path, master: str, port: int, ready: Path, stop: Path) -> list[str]:
    settings = {
        "spark.plugins": PLUGIN,
        "spark.connect.grpc.binding.port": str(port),
        "spark.cores.max": str(MOST),
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.locality.wait": "0s",
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.replicationReattemptInterval": "2s",
    }
    sluice = str(Path(sys.executable).with_name("sluice"))
    ours = ["--policy", "ds2", "--set", "least_drop=1", "--max-executors", str(MOST), "--interval", "2s"]
    ours += ["--cooldown", "4s", "--journal", str(root / "journal.jsonl")]
    confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return [sluice, "submit", *ours, "--master", master, *confs, "--", connect_server.__file__, str(ready), str(stop)]


def _seen(root: Path) -> tuple[str, int] | None:
    """The query and the executors of the last cycle in which anything was read."""
    if not (root / "journal.jsonl").exists():
        return None
    reports = [report for run in read_runs(root / "journal.jsonl") for report in run.reports]
    for report in reversed(reports):
        (name, metrics), *_ = report.cycle.observation.operators.items()
        if metrics.input_rate:
            return name, metrics.parallelism
    return None


def wait(condition: Callable[[], bool], what: str, process: subprocess.Popen[bytes], log: Path) -> float:
    began_s = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - began_s
        if process.poll() is not None or waited_s > PATIENCE_S:
            raise SluiceError(f"no {what} after {waited_s:.0f} s: {log.read_text()[-2000:]}")
        time.sleep(0.5)
    return time.monotonic() - began_s


if __name__ == "__main__":
    main()
