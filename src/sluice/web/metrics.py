"""The metrics for Prometheus, defined once: `attach(metrics_port=...)`, `/metrics` of a page and the Grafana
dashboard in `examples/` are all made of this list.

Base units in the names, counters end in `_total`. What is unknown now is left out, not shown as it once was; so is a
query that has ended.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sluice import __version__
from sluice.errors import BadInputError, needs_extra
from sluice.journal.results import KINDS, CycleReport

if TYPE_CHECKING:
    from sluice.web.library import Library

RUN = "run"
"""The label that every metric has: which run it is of."""


@dataclass(frozen=True)
class Metric:
    """One metric: its name as it is queried, what it means, and its labels beside `run`."""

    name: str
    text: str
    kind: Literal["gauge", "counter"] = "gauge"
    labels: tuple[str, ...] = ()
    unit: str = "short"
    """As Grafana calls it."""
    field: str | None = None
    """Of an operator's metrics, where it is one per operator."""


METRICS = (
    Metric("sluice_executors", "Executors or slots observed."),
    Metric("sluice_executors_target", "Executors or slots wanted after guards."),
    Metric("sluice_cycles_total", "Cycles, by their first result.", "counter", ("outcome",)),
    Metric("sluice_requests_unfulfilled_total", "Requests whose executors did not come in time.", "counter"),
    Metric("sluice_last_cycle_timestamp_seconds", "When it last decided.", unit="dateTimeAsIso"),
    *(
        Metric(name, text, "gauge", ("query",), unit, key)
        for name, key, text, unit in (
            ("sluice_input_records_per_second", "input_rate", "Records read.", "cps"),
            ("sluice_arrival_records_per_second", "arrival_rate", "Records that arrived at its sources.", "cps"),
            ("sluice_capacity_records_per_second", "true_input_rate", "Records the executors there could read.", "cps"),
            ("sluice_busy_ratio", "busy", "Share of all task slots its tasks used.", "percentunit"),
            ("sluice_latency_seconds", "latency_s", "How long a record waits and is worked on.", "s"),
            ("sluice_lag_records", "lag", "Records waiting in its sources.", "short"),
            ("sluice_state_bytes", "state_bytes", "Size of its state.", "bytes"),
            ("sluice_batch_seconds", "batch_s", "Mean time of a micro-batch.", "s"),
        )
    ),
)


@dataclass
class RunFigures:
    """One run's metrics now. Operators map names to their fields."""

    executors: float | None = None
    target: float | None = None
    cycles: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    unfulfilled: int = 0
    cycled_s: float | None = None
    operators: Mapping[str, Any] = field(default_factory=dict)

    def values(self, metric: Metric) -> Iterator[tuple[tuple[str, ...], float]]:
        """Labels beside `run`, and the value; nothing where it is unknown."""
        if metric.field is not None:
            for name, one in self.operators.items():
                if (value := getattr(one, metric.field, None)) is not None:
                    yield (name,), value
            return
        match metric.name:
            case "sluice_cycles_total":
                yield from (((kind,), count) for kind, count in self.cycles.items())
                return
            case "sluice_requests_unfulfilled_total":
                known: float | None = self.unfulfilled
            case "sluice_executors":
                known = self.executors
            case "sluice_executors_target":
                known = self.target
            case _:
                known = self.cycled_s
        if known is not None:
            yield (), known


def expose(runs: Mapping[str, RunFigures]) -> tuple[bytes, str]:
    """The text that Prometheus reads, and its type."""
    with needs_extra("metrics", "dashboard"):
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
        from prometheus_client.registry import Collector

    class Runs(Collector):
        def collect(self) -> Iterator[Any]:
            for metric in METRICS:
                family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
                made = family(metric.name, metric.text, labels=(RUN, *metric.labels))
                for run, figures in runs.items():
                    for labels, value in figures.values(metric):
                        made.add_metric((run, *labels), value)
                yield made
            about = GaugeMetricFamily("sluice_build_info", "What runs.", labels=("version",))
            about.add_metric((__version__,), 1)
            yield about

    registry = CollectorRegistry()
    registry.register(Runs())
    return generate_latest(registry), CONTENT_TYPE_LATEST


def exposition(library: Library) -> tuple[bytes, str]:
    """Of all journals of a page that are live."""
    runs: dict[str, RunFigures] = {}
    for shelf in library.shelves():
        if not shelf.is_live:
            continue
        state = shelf.refresh()
        if state.last is None or not shelf.is_live:
            continue
        runs[shelf.title if shelf.title not in runs else f"{shelf.title} {shelf.id}"] = RunFigures(
            executors=state.slots(state.last.observation),
            target=state.columns.last("target")[-1],
            cycles={**dict.fromkeys(KINDS, 0), **state.kinds},
            unfulfilled=state.unfulfilled,
            cycled_s=shelf.changed_s,
            operators=state.last.observation.operators,
        )
    return expose(runs)


class MetricsServer:
    """Serves `/metrics` of one run on an address; called with every report."""

    def __init__(self, port: int, host: str = "127.0.0.1", run: str = "") -> None:
        with needs_extra("metrics_port", "dashboard"):
            import prometheus_client  # noqa: F401
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        figures, name = RunFigures(), run
        self.figures = figures

        class MetricsAnswer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.partition("?")[0] not in ("/", "/metrics"):
                    self.send_error(404)
                    return
                text, kind = expose({name: figures})
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        try:
            self._server = Server((host, port), MetricsAnswer)
        except (OSError, ValueError) as error:
            # a name that cannot be one is a ValueError
            why = getattr(error, "strerror", None) or error
            raise BadInputError(f"cannot serve metrics on port {port} of {host}: {why}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="sluice-metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def __call__(self, report: CycleReport) -> None:
        cycle, result = report.cycle, report.result
        self.figures.unfulfilled += result.kind == "unfulfilled"
        if len(report.outcomes) > 1:
            return
        self.figures.cycles[result.kind] += 1
        self.figures.executors = max(cycle.observation.parallelism.values())
        self.figures.target = max(cycle.target.parallelism.values())
        self.figures.cycled_s = time.time()
        self.figures.operators = cycle.observation.operators

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
