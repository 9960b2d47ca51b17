"""An attachment's figures for Prometheus: base units in the names, counters that end in `_total`, one label per query.

What is unknown now is left out, not shown as it once was; so is a query that has ended.
"""

from __future__ import annotations

import time
from typing import Any

from sluice import __version__
from sluice.errors import BadInputError
from sluice.journal.file import Entry
from sluice.spark.attach.told import outcome_of

PER_QUERY = {
    "sluice_input_records_per_second": ("input_rate", "Records read."),
    "sluice_arrival_records_per_second": ("arrival_rate", "Records that arrived at its sources."),
    "sluice_capacity_records_per_second": ("true_input_rate", "Records the executors there could read."),
    "sluice_busy_ratio": ("busy", "Share of all task slots its tasks used."),
    "sluice_latency_seconds": ("latency_s", "How long a record waits and is worked on."),
    "sluice_lag_records": ("lag", "Records waiting in its sources."),
    "sluice_state_bytes": ("state_bytes", "Size of its state."),
    "sluice_batch_seconds": ("batch_s", "Mean time of a micro-batch."),
}


class MetricsServer:
    """Serves `/metrics` on a port of the loopback address; called with every cycle's entry."""

    def __init__(self, port: int) -> None:
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
        except ImportError as error:
            raise BadInputError("metrics_port needs the package prometheus-client: install sluice[metrics]") from error
        registry = CollectorRegistry()
        self._executors = Gauge("sluice_executors", "Executors there are.", registry=registry)
        self._wanted = Gauge("sluice_executors_wanted", "Executors the guarded wish asks for.", registry=registry)
        self._cycles = Counter("sluice_cycles", "Decisions, by what became of them.", ["outcome"], registry=registry)
        self._cycled = Gauge("sluice_last_cycle_timestamp_seconds", "When it last decided.", registry=registry)
        self._gauges: dict[str, Any] = {
            name: Gauge(name, text, ["query"], registry=registry) for name, (_, text) in PER_QUERY.items()
        }
        Gauge("sluice_build_info", "What runs.", ["version"], registry=registry).labels(__version__).set(1)
        for outcome in ("scaled", "failed", "would_scale", "held"):
            self._cycles.labels(outcome)
        try:
            self._server, self._thread = start_http_server(port, addr="127.0.0.1", registry=registry)
        except OSError as error:
            raise BadInputError(f"cannot serve metrics on port {port}: {error.strerror}") from error

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def __call__(self, entry: Entry) -> None:
        operators = entry["observation"]["operators"]
        self._executors.set(max(metrics["parallelism"] for metrics in operators.values()))
        self._wanted.set(max(entry["plan"]["parallelism"].values()))
        self._cycles.labels(outcome_of(entry)).inc()
        self._cycled.set(time.time())
        for name, (key, _) in PER_QUERY.items():
            self._gauges[name].clear()
            for query, metrics in operators.items():
                if metrics.get(key) is not None:
                    self._gauges[name].labels(query).set(metrics[key])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
