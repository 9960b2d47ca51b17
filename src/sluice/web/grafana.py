"""A Grafana dashboard with one panel per metric, made of the same list as the metrics themselves."""

from __future__ import annotations

import json
from typing import Any

from sluice.web.metrics import METRICS, RUN, Metric

WIDTH, HEIGHT, COLUMNS = 12, 8, 2


def dashboard() -> dict[str, Any]:
    """As Grafana imports it; the data source and the run are chosen on its page."""
    return {
        "title": "sluice",
        "uid": "sluice",
        "tags": ["spark", "streaming", "autoscaling"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                {
                    "name": RUN,
                    "type": "query",
                    "label": "Run",
                    "datasource": _SOURCE,
                    "query": f"label_values(sluice_executors, {RUN})",
                    "refresh": 2,
                    "includeAll": True,
                    "multi": True,
                },
            ]
        },
        "panels": [_panel(number, metric) for number, metric in enumerate(METRICS)],
    }


def dashboard_json() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


_SOURCE = {"type": "prometheus", "uid": "${source}"}


def _panel(number: int, metric: Metric) -> dict[str, Any]:
    series = f'{metric.name}{{{RUN}=~"${RUN}"}}'
    shown = f"rate({series}[5m])" if metric.kind == "counter" else series
    legend = " ".join(f"{{{{{label}}}}}" for label in (RUN, *metric.labels))
    return {
        "id": number + 1,
        "title": metric.text.rstrip("."),
        "description": metric.name,
        "type": "timeseries",
        "datasource": _SOURCE,
        "gridPos": {
            "x": WIDTH * (number % COLUMNS),
            "y": HEIGHT * (number // COLUMNS),
            "w": WIDTH,
            "h": HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": metric.unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": shown, "legendFormat": legend, "datasource": _SOURCE}],
    }
