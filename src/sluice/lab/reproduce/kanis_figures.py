"""The figures of Kanis' thesis, chapter 7, as printed. Every run was made once; a dash means it crashed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Figures = tuple[float, float, float, float, float, float]
COLUMNS = ("avg_slots", "max_slots", "avg_latency_s", "p50_latency_s", "p95_latency_s", "rescales")
"""What the six figures of a row are: task managers (mean, largest), latency (mean, 50th, 95th), scaling actions."""


@dataclass(frozen=True)
class PrintedTable:
    """`rows` maps `policy`, or `policy:parameter=value`, to what is printed. `initial` is instances per operator."""

    title: str
    pipeline: str
    workload: str
    rows: Mapping[str, Figures | None]
    initial: int | None = None


TABLES: Mapping[str, PrintedTable] = {
    "7.1": PrintedTable(
        "Dhalion's scale-down factor, query 1",
        "q1",
        "cosine",
        {
            "dhalion:scale_down_factor=1.1": (16.8, 31, 14.8, 0.121, 65.1, 27),
            "dhalion:scale_down_factor=1.15": (15.4, 32, 20.1, 3.6, 80.1, 27),
            "dhalion:scale_down_factor=1.2": (13.2, 30, 68.3, 23.7, 233.3, 27),
            "dhalion:scale_down_factor=1.25": (14.2, 38, 104.1, 36.1, 339.5, 27),
            "dhalion:scale_down_factor=1.3": (15.1, 41, 106.9, 41.8, 348.7, 26),
        },
    ),
    "7.2": PrintedTable(
        "Dhalion's scale-down factor, query 11",
        "q11",
        "cosine",
        {
            "dhalion:scale_down_factor=1.1": (34.5, 66, 84.7, 7.8, 366, 26),
            "dhalion:scale_down_factor=1.15": (32.1, 66, 107.1, 24.7, 334.2, 27),
            "dhalion:scale_down_factor=1.2": (22.8, 51, 130.7, 60, 353.3, 27),
            "dhalion:scale_down_factor=1.25": (35.7, 73, 121.5, 52.2, 358.2, 26),
            "dhalion:scale_down_factor=1.3": (30.9, 73, 145.3, 90.2, 388.6, 27),
        },
    ),
    "7.3": PrintedTable(
        "DS2's over-provisioning factor, query 1",
        "q1",
        "cosine",
        {
            "ds2:over_provisioning=1.0": (6.5, 15, 311.8, 317.5, 554.6, 23),
            "ds2:over_provisioning=1.2": (9.4, 15, 39.4, 29.3, 110.5, 23),
            "ds2:over_provisioning=1.4": (10.3, 15, 11.7, 3.6, 41.7, 22),
        },
    ),
    "7.4": PrintedTable(
        "DS2's over-provisioning factor, query 11",
        "q11",
        "cosine",
        {
            "ds2:over_provisioning=1.0": (9.4, 30, 388.5, 388.9, 588.9, 26),
            "ds2:over_provisioning=1.2": (13.2, 30, 284.1, 316.3, 499.2, 26),
            "ds2:over_provisioning=1.4": (15.8, 33, 160, 137.2, 405.5, 26),
        },
    ),
    "7.5": PrintedTable(
        "HPA-Varga's utilisation target, query 1",
        "q1",
        "cosine",
        {
            "hpa-varga:utilisation_target=0.6": (9.6, 17, 12, 3.2, 42.6, 26),
            "hpa-varga:utilisation_target=0.7": (10.2, 26, 34.8, 24.3, 113.3, 26),
            "hpa-varga:utilisation_target=0.8": (9.4, 23, 85.1, 55.9, 285.8, 26),
        },
    ),
    "7.6": PrintedTable(
        "HPA-Varga's utilisation target, query 11",
        "q11",
        "cosine",
        {
            "hpa-varga:utilisation_target=0.6": None,
            "hpa-varga:utilisation_target=0.7": (26.5, 69, 219.3, 244.1, 379.8, 26),
            "hpa-varga:utilisation_target=0.8": None,
        },
    ),
    "7.7": PrintedTable(
        "HPA-CPU's target, query 1",
        "q1",
        "cosine",
        {
            "hpa-cpu:target=0.5": (17, 32, 4, 0.013, 30.2, 26),
            "hpa-cpu:target=0.6": (13.4, 24, 3.9, 0.012, 28.2, 26),
            "hpa-cpu:target=0.7": (11.4, 21, 6.4, 0.018, 35.8, 26),
            "hpa-cpu:target=0.8": (9.8, 22, 36, 14.2, 136.1, 26),
            "hpa-cpu:target=0.9": (8.7, 16, 102, 43.7, 302.6, 26),
            "hpa-cpu:target=1.0": (4.3, 15, 327.7, 377.9, 60.6, 3),
        },
    ),
    "7.8": PrintedTable(
        "HPA-CPU's target, query 11",
        "q11",
        "cosine",
        {
            "hpa-cpu:target=0.5": (23.9, 49, 30.2, 0.029, 141.8, 26),
            "hpa-cpu:target=0.6": (19.5, 53, 107.8, 52.8, 318.9, 26),
            "hpa-cpu:target=0.7": (14.2, 34, 178, 146.9, 399.9, 26),
            "hpa-cpu:target=0.8": (11, 30, 254.9, 294.3, 488.1, 25),
            "hpa-cpu:target=0.9": (8.8, 30, 296, 328.9, 539.9, 20),
            "hpa-cpu:target=1.0": (7.4, 30, 339.1, 385.1, 582, 7),
        },
    ),
    "7.9": PrintedTable(
        "cosine, query 1",
        "q1",
        "cosine",
        {
            "dhalion": (13.2, 30, 68.3, 23.7, 233.3, 27),
            "ds2": (9.4, 15, 39.4, 29.3, 110.5, 23),
            "hpa-cpu": (11.4, 21, 8.6, 0.018, 35.8, 26),
            "hpa-varga": (10.2, 26, 17, 24.3, 113.3, 26),
        },
    ),
    "7.10": PrintedTable(
        "cosine, query 11",
        "q11",
        "cosine",
        {
            "dhalion": (22.8, 51, 130.7, 60, 353.3, 27),
            "ds2": (13.2, 30, 284.1, 316.3, 499.2, 26),
            "hpa-cpu": (14.2, 34, 178, 146.9, 399.9, 26),
            "hpa-varga": (26.5, 69, 219.3, 244.1, 379.8, 26),
        },
    ),
    "7.11": PrintedTable(
        "random, query 1",
        "q1",
        "random",
        {
            "dhalion": (14.9, 33, 76.1, 29.7, 337.9, 27),
            "ds2": (9.4, 16, 71.8, 41.9, 223.2, 26),
            "hpa-cpu": (11.1, 24, 20.1, 0.125, 155.6, 26),
            "hpa-varga": (10.4, 31, 51.4, 24.5, 215.3, 26),
        },
    ),
    "7.12": PrintedTable(
        "random, query 11",
        "q11",
        "random",
        {
            "dhalion": (35.3, 76, 84.7, 35.5, 310.1, 26),
            "ds2": (14.8, 32, 295.8, 341.3, 611.8, 26),
            "hpa-cpu": (14.2, 30, 273.8, 313.1, 499.7, 27),
            "hpa-varga": None,
        },
    ),
    "7.13": PrintedTable(
        "increasing, query 1",
        "q1",
        "increasing",
        {
            "dhalion": (15.3, 44, 44.8, 6.5, 169.4, 27),
            "ds2": (9.1, 15, 30, 0.033, 158, 13),
            "hpa-cpu": (10.7, 21, 4.8, 0.017, 32.2, 24),
            "hpa-varga": (8.4, 16, 10.9, 2.3, 38.7, 20),
        },
        initial=1,
    ),
    "7.14": PrintedTable(
        "increasing, query 11",
        "q11",
        "increasing",
        {
            "dhalion": (28.8, 67, 98.4, 44.5, 329.2, 27),
            "ds2": (12.8, 30, 246.9, 313.5, 385.2, 26),
            "hpa-cpu": (17.7, 44, 125.5, 117.3, 324.5, 26),
            "hpa-varga": None,
        },
        initial=1,
    ),
    "7.15": PrintedTable(
        "decreasing, query 1",
        "q1",
        "decreasing",
        {
            "dhalion": (16.7, 38, 44.4, 20, 182.7, 27),
            "ds2": (10.1, 16, 127.5, 148.6, 260.3, 24),
            "hpa-cpu": (13.7, 23, 6.4, 0.017, 36.8, 21),
            "hpa-varga": (10, 18, 24.2, 11.9, 92.8, 22),
        },
    ),
    "7.16": PrintedTable(
        "decreasing, query 11",
        "q11",
        "decreasing",
        {
            "dhalion": None,
            "ds2": (14.4, 30, 343.8, 354, 429.1, 26),
            "hpa-cpu": (23.8, 49, 107.9, 40.4, 323.6, 23),
            "hpa-varga": None,
        },
    ),
}

QUERIES: Mapping[str, Mapping[str, Figures | None]] = {
    "q1": TABLES["7.9"].rows,
    "q2": {
        "dhalion": (13.2, 29, 87.4, 15.4, 314.7, 27),
        "ds2": (8.9, 15, 40.5, 36.3, 122.2, 21),
        "hpa-cpu": (10.7, 19, 8.6, 0.021, 38.9, 26),
        "hpa-varga": (8.9, 19, 17, 11.2, 56.9, 26),
    },
    "q3": {
        "dhalion": (16.1, 50, 1.7, 0.015, 14.3, 27),
        "ds2": None,
        "hpa-cpu": (7.8, 50, 73.7, 41.2, 275.5, 23),
        "hpa-varga": (11.1, 50, 72.1, 44.5, 205.4, 24),
    },
    "q5": {
        "dhalion": (8.9, 30, 11, 0.023, 56.2, 26),
        "ds2": (23.2, 68, 81, 53.9, 245.9, 26),
        "hpa-cpu": (5.3, 30, 18.6, 0.95, 67.8, 23),
        "hpa-varga": (5.8, 30, 60.9, 39, 198.9, 24),
    },
    "q11": TABLES["7.10"].rows,
}
"""Table 7.18, cosine."""

INPUT_RATES: Mapping[str, tuple[float, float, float]] = {
    "q1": (200_000, 2_200_000, 100_000),
    "q2": (200_000, 2_200_000, 100_000),
    "q3": (3_000, 33_000, 1_500),
    "q5": (10_000, 110_000, 7_500),
    "q11": (200_000, 2_200_000, 100_000),
}
"""Table 7.17: smallest and largest input rate of the cosine and its largest noise, records/s."""

SETTLED: Mapping[str, Mapping[str, tuple[float | None, float | None] | None]] = {
    "q1": {"dhalion": (None, None), "ds2": (None, 11), "hpa-cpu": (None, 9), "hpa-varga": (None, None)},
    "q11": {"dhalion": None, "ds2": (None, None), "hpa-cpu": (None, None), "hpa-varga": None},
}
"""Table 7.19: minutes to settle at the high and at the lower load; null is `40+`, a missing pair crashed."""
SETTLED_AT: Mapping[str, tuple[int, int, float]] = {"ds2": (3, 9, 0.65), "hpa-cpu": (2, 10, 0.56)}
"""Query 1 at the lower load: scaling actions (7.19), then slots and their mean CPU use when settled (section 7.4)."""

DEFAULTS: Mapping[str, str] = {
    "dhalion": "dhalion:scale_down_factor=1.2",
    "ds2": "ds2:over_provisioning=1.2",
    "hpa-cpu": "hpa-cpu:target=0.7",
    "hpa-varga": "hpa-varga:utilisation_target=0.7",
}
"""What a label without a setting stands for."""
