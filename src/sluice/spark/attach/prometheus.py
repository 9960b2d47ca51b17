"""An attachment's figures for Prometheus: base units in the names, counters that end in `_total`, one label per query.

What is unknown now is left out, not shown as it once was; so is a query that has ended.
"""

from __future__ import annotations

import time
from typing import Any

from sluice import __version__
from sluice.errors import BadInputError, needs_extra
from sluice.journal.results import KINDS, CycleReport

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
    """Serves `/metrics` on a port of the loopback address; called with every report."""

    def __init__(self, port: int) -> None:
        with needs_extra("metrics_port", "dashboard"):
            from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
        registry = CollectorRegistry()
        self._executors = Gauge("sluice_executors", "Executors observed.", registry=registry)
        self._target = Gauge("sluice_executors_target", "Target number of executors, after guards.", registry=registry)
        self._cycles = Counter("sluice_cycles", "Cycles, by their first result.", ["outcome"], registry=registry)
        self._unfulfilled = Counter(
            "sluice_requests_unfulfilled", "Requests whose executors did not come in time.", registry=registry
        )
        self._cycled = Gauge("sluice_last_cycle_timestamp_seconds", "When it last decided.", registry=registry)
        self._gauges: dict[str, Any] = {
            name: Gauge(name, text, ["query"], registry=registry) for name, (_, text) in PER_QUERY.items()
        }
        Gauge("sluice_build_info", "What runs.", ["version"], registry=registry).labels(__version__).set(1)
        for kind in KINDS:
            self._cycles.labels(kind)
        try:
            self._server, self._thread = start_http_server(port, addr="127.0.0.1", registry=registry)
        except OSError as error:
            raise BadInputError(f"cannot serve metrics on port {port}: {error.strerror}") from error

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def __call__(self, report: CycleReport) -> None:
        cycle, result = report.cycle, report.result
        if result.kind == "unfulfilled":
            self._unfulfilled.inc()
        if len(report.outcomes) > 1:
            return
        self._executors.set(max(cycle.observation.parallelism.values()))
        self._target.set(max(cycle.target.parallelism.values()))
        self._cycles.labels(result.kind).inc()
        self._cycled.set(time.time())
        for name, (key, _) in PER_QUERY.items():
            self._gauges[name].clear()
            for query, metrics in cycle.observation.operators.items():
                if (value := getattr(metrics, key)) is not None:
                    self._gauges[name].labels(query).set(value)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
