"""An attachment's figures for Prometheus: base units, counters that end in `_total`, one label per query."""

from __future__ import annotations

from collections.abc import Callable

from sluice.control.journal import Entry
from sluice.errors import BadInputError


def serve(port: int) -> Callable[[Entry], None]:
    """Serve `/metrics` on this port of the loopback address; the function returned takes every cycle's entry."""
    try:
        from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
    except ImportError as error:
        raise BadInputError("metrics_port needs the package prometheus-client: install sluice[metrics]") from error
    registry = CollectorRegistry()
    executors = Gauge("sluice_executors", "Executors there are.", registry=registry)
    wanted = Gauge("sluice_executors_wanted", "Executors the guarded wish asks for.", registry=registry)
    actions = Counter("sluice_scaling_actions", "Scaling actions taken.", registry=registry)
    failures = Counter("sluice_scaling_failures", "Scaling actions that failed.", registry=registry)
    rates = Gauge("sluice_input_records_per_second", "Records read.", ["query"], registry=registry)
    busy = Gauge("sluice_busy_ratio", "Share of all task slots its tasks used.", ["query"], registry=registry)
    latency = Gauge("sluice_latency_seconds", "How long a record waits and is worked on.", ["query"], registry=registry)
    lag = Gauge("sluice_lag_records", "Records waiting in its sources.", ["query"], registry=registry)
    try:
        start_http_server(port, addr="127.0.0.1", registry=registry)
    except OSError as error:
        raise BadInputError(f"cannot serve metrics on port {port}: {error.strerror}") from error

    def on_cycle(entry: Entry) -> None:
        operators = entry["observation"]["operators"]
        executors.set(max(metrics["parallelism"] for metrics in operators.values()))
        wanted.set(max(entry["plan"]["parallelism"].values()))
        applied = entry["applied"]
        if applied:
            (failures if applied["error"] else actions).inc()
        for gauge, key in ((rates, "input_rate"), (busy, "busy"), (latency, "latency_s"), (lag, "lag")):
            for query, metrics in operators.items():
                if metrics[key] is not None:
                    gauge.labels(query).set(metrics[key])

    return on_cycle
