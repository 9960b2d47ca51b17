"""The figures of ContTune (PVLDB 16, 2023) as printed, by method and query."""

from __future__ import annotations

from collections.abc import Mapping

NAMES = ("WordCount", "Q1", "Q2", "Q3", "Q5", "Q8")
Printed = Mapping[str, tuple[float, ...]]
"""Method -> one figure per query, in the order of `NAMES`."""

RECONFIGURATIONS: Printed = {
    "Dhalion": (3.08, 5.36, 4.97, 3.84, 5.59, 3.61),
    "DS2": (1.78, 2.29, 2.29, 1.49, 3.34, 3.21),
    "Big + DS2": (1.73, 2.22, 2.29, 1.66, 3.34, 3.02),
    "Dragster": (2.75, 3.85, 3.85, 2.75, 4.95, 3.85),
    "ContTune 0": (1.33, 1.61, 1.62, 1.26, 2.01, 1.46),
    "ContTune 3": (1.16, 1.32, 1.28, 1.18, 1.55, 1.26),
    "Random": (11.16, 22.72, 17.43, 16.18, 13.36, 8.72),
}
"""Table 4a, per tuning time."""
MEANS = {
    "Dhalion": 4.41,
    "DS2": 2.40,
    "Big + DS2": 2.37,
    "Dragster": 3.67,
    "ContTune 0": 1.55,
    "ContTune 3": 1.29,
    "Random": 14.93,
}
"""The last column of table 4a."""
_DOUBLED = (16.0, 32.0, 32.0, 32.0, 32.0, 16.0)
"""Where a Big phase, or Dragster's largest configuration, ends."""
LARGEST_CORES: Printed = {
    "Dhalion": (17, 30, 29, 22, 27, 13),
    "DS2": (14, 26, 24, 18, 25, 11),
    **dict.fromkeys(("Big + DS2", "Dragster", "ContTune 0", "ContTune 3"), _DOUBLED),
}
"""Table 4b. Slots are shared: the cores of a job are the instances of its largest operator."""
TUNING_S: Printed = {
    "Dhalion": (8226.54, 9441.17, 8888.33, 7870.00, 11928.58, 8032.83),
    "DS2": (4624.70, 3991.42, 4014.15, 2955.07, 7128.68, 7163.79),
    "Big + DS2": (4641.78, 3901.92, 4100.27, 3414.64, 6941.12, 6697.58),
    "Dragster": (8569.01, 7685.27, 7681.32, 6757.03, 11533.06, 9570.16),
    "ContTune 0": (3394.57, 2725.56, 2818.33, 2476.41, 4209.26, 3090.27),
    "ContTune 3": (2947.20, 2293.70, 2206.18, 2304.35, 3324.88, 2736.19),
}
"""Table 4d, in all 120 tuning times."""
BACKLOG_PERCENT: Printed = {
    "Dhalion": (12.79, 28.31, 19.39, 22.03, 27.43, 7.38),
    "DS2": (1.92, 4.60, 2.86, 3.53, 8.03, 1.52),
    "Big + DS2": (1.52, 3.22, 1.96, 2.33, 7.00, 1.40),
    "Dragster": (6.08, 7.97, 7.11, 2.52, 7.49, 5.14),
    "ContTune 0": (1.01, 2.04, 1.31, 1.76, 6.86, 0.66),
    "ContTune 3": (1.04, 1.79, 1.34, 1.50, 6.48, 0.63),
}
"""Table 4e: records that wait when the job is reconfigured, of all."""
CORE_SECONDS: Printed = {
    "Dhalion": (540840.16, 874697.97, 796300.50, 692169.32, 863432.32, 520995.33),
    "DS2": (550029.28, 906065.83, 821041.00, 698066.74, 876788.87, 524793.87),
    "Big + DS2": (562825.71, 929565.85, 853817.58, 732693.26, 899933.87, 535530.00),
    "Dragster": (570678.66, 947174.81, 865663.73, 736326.66, 930962.75, 543605.93),
    "ContTune 0": (548514.47, 903635.23, 820388.86, 698339.79, 878424.08, 533789.47),
    "ContTune 3": (532022.10, 905940.99, 817178.90, 699401.10, 878743.96, 533849.47),
}
"""Table 4f."""
CATCHING_UP_S: Printed = {
    "Dhalion": (1277.17, 5966.53, 2744.8, 2913.87, 4644.05, 513.38),
    "DS2": (33.66, 406.35, 130.57, 193.3, 1339.06, 480.77),
    "Big + DS2": (121, 334.65, 148.54, 192.97, 1289.33, 0.04),
    "Dragster": (493.95, 1006.09, 724.32, 71.24, 893.87, 236.1),
    "ContTune 0": (123.75, 324.45, 112.82, 159.79, 1297.18, 35.89),
    "ContTune 3": (265.98, 267.18, 144.47, 135.05, 1301.28, 35.89),
}
"""Table 6: time of processing what was buffered."""
BEYOND_LOAD_S: Printed = {
    method: tuple(a + b for a, b in zip(TUNING_S[method], CATCHING_UP_S[method], strict=True)) for method in TUNING_S
}
"""Table 4c without its 72,000 s of load: the sum of tables 4d and 6, to the hundredth (once to four)."""
WORDCOUNT: Mapping[str, Mapping[str, tuple[int, int, int]]] = {
    "all reconfigurations": {"DS2": (35, 38, 35), "ContTune 3": (24, 23, 22)},
    "to end backpressure": {"DS2": (22, 25, 26), "ContTune 3": (11, 13, 13)},
    "of over-provisioned jobs": {"DS2": (13, 13, 9), "ContTune 3": (10, 9, 8)},
}
"""Table 7: three permutations of WordCount."""
ACQUISITION = {"DS2": 275.0, "expected improvement (eq. 4)": 164.0, "feasible mean (eq. 5)": 151.0}
"""Table 8: query 1, six permutations, real rates known."""
CORES_AT_TEN: Printed = {"ContTune 3": (13, 25, 23, 18, 22, 10), "DS2": (14, 26, 24, 18, 25, 11)}
"""Table 5: the second time the largest load comes."""
REAL_WORKLOADS: Mapping[str, Mapping[str, int]] = {
    "video-streaming": {"DS2": 58, "ContTune 0": 44, "ContTune 3": 32},
    "etl": {"DS2": 39, "ContTune 0": 29, "ContTune 3": 22},
}
"""Figure 7, with the figures of section 7.3; the trace of its third job is not published as rates per minute."""
