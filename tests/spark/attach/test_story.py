"""Executors that come late: what is reported of 1 -> 3 -> 1 on a cluster that takes a minute to start one."""

import logging

import pytest

from sluice.control.decider import Decider
from sluice.control.engine import RecordCount
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.journal.file import MemoryJournal
from sluice.model import Observation, OperatorChange, OperatorMetrics, Recommendation, Reconciliation, Target
from sluice.spark.attach.application import application_graph
from sluice.spark.attach.log import log_report
from sluice.web.metrics import MetricsServer

BUSY_S = (100.0, 400.0)


class SlowCluster:
    """Requested executors come after `start_s`, or never; released ones leave at once. Time passes by sleeping."""

    tick_s = 1.0
    abilities = frozenset()
    graph = application_graph(("q",), 1, {})

    def __init__(self, start_s):
        self.clock = self
        self.start_s = start_s
        self.time_s, self.here, self.requested, self.since_s = 0.0, 1, 1, 0.0

    def now_s(self):
        return self.time_s

    def sleep_s(self, duration_s):
        self.time_s += duration_s

    def start(self, target):
        return target

    def stop(self):
        return RecordCount(arrived=0, processed=0, waiting=0, lost=None, duplicated=None)

    def maintain(self):
        if self.requested > self.here and self.time_s - self.since_s >= self.start_s:
            self.here = self.requested
        return ()

    def observe(self):
        return Observation(time_s=self.time_s, interval_s=10.0, operators={"q": OperatorMetrics(parallelism=self.here)})

    def reconcile(self, target):
        count, before = target.parallelism["q"], self.requested
        if count != before:
            self.requested, self.since_s, self.here = count, self.time_s, min(self.here, count)
        changes = {"q": OperatorChange(before=before, requested=count)} if count != before else {}
        return Reconciliation(requested={"q": count}, observed={"q": self.here}, changes=changes)


class WantsThree:
    """Recommends from what was observed, as every policy does: three while there is work, else one."""

    def decide(self, observation, memory):
        count = 3 if BUSY_S[0] <= observation.time_s < BUSY_S[1] else 1
        return Recommendation(parallelism={"q": count}, reason=f"{count} needed"), memory


def run(start_s, watchers=()):
    journal = MemoryJournal()
    loop = Loop(
        engine=SlowCluster(start_s),
        decider=Decider(WantsThree()),
        journal=journal,
        guards=Guards(max_parallelism=4, cooldown_s=10.0),
        fulfil_within_s=120.0,
    )

    def report(found):
        for watcher in watchers:
            watcher(found)

    loop.run(Target(parallelism={"q": 1}), duration_s=600.0, interval_s=10.0, on_report=report)
    return journal


def test_one_to_three_to_one_is_two_actions(caplog):
    pytest.importorskip("prometheus_client")
    server = MetricsServer(0)
    try:
        with caplog.at_level(logging.INFO, "sluice"):
            journal = run(60.0, [log_report, server])
        counted = {kind: server.figures.cycles[kind] for kind in ("waiting", "scaled", "unfulfilled")}
    finally:
        server.close()
    actions = [report for report in journal.reports() if report.result.is_action]
    assert [report.result.changed for report in actions] == [{"q": (1, 3)}, {"q": (3, 1)}]
    assert [record.getMessage().split()[0] for record in caplog.records] == [
        "event=waiting",
        "event=scaled",
        "event=scaled",
    ]
    assert counted == {"waiting": 1.0, "scaled": 1.0, "unfulfilled": 0.0}


def test_executors_that_never_come_are_reported_and_requested_again_after_growing_pauses(caplog):
    with caplog.at_level(logging.INFO, "sluice"):
        journal = run(float("inf"), [log_report])
    kinds = [report.result.kind for report in journal.reports() if report.result.is_action]
    # 300 s of need: 120 s of waiting, 120 s of pause, and a second request that the end of the need takes back
    assert kinds == ["unfulfilled", "waiting", "scaled"]
