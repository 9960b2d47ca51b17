"""What an attachment reports: log lines and Prometheus metrics."""

import logging
import urllib.request

import pytest

from sluice.errors import BadInputError
from sluice.journal.results import CycleReport
from sluice.model import Observation, OperatorMetrics
from sluice.spark.attach.log import line, log_report
from sluice.web.metrics import MetricsServer
from tests.journal.records import cycle, outcome


def report(*outcomes, target=1, proposed=None, problem=None, query="counts", events=(), **metrics):
    seen = Observation(time_s=30.04, interval_s=15, operators={query: OperatorMetrics(parallelism=1, **metrics)})
    made = cycle(
        1,
        names=(query,),
        target=target,
        proposed=proposed,
        problem=problem,
        events=events,
        action="apply" if outcomes else "dry_run" if proposed else "none",
    )
    return CycleReport(made.model_copy(update={"time_s": 30.04, "observation": seen}), outcomes)


def changed(status="done", **parts):
    return outcome(1, 1, 4, status=status, names=("counts",), **parts)


WAITING, DONE = changed("waiting", observed=1, detail="requested 4 executors"), changed(detail="there after 9 s")


@pytest.mark.parametrize(
    ("cycle", "level", "begins"),
    [
        (report(DONE, target=4), "INFO", "event=scaled time_s=30.0 executors=1 target=4 reason="),
        (report(WAITING, target=4), "INFO", "event=waiting"),
        (report(WAITING, DONE, target=4), "INFO", "event=scaled"),
        (report(WAITING, changed("unfulfilled", observed=2), target=4), "WARNING", "event=unfulfilled"),
        (report(proposed=4), "INFO", "event=would_scale time_s=30.0 executors=1 target=4"),
        (report(), "DEBUG", "event=held"),
        (report(problem="policy failed"), "WARNING", "event=held"),
        (report(changed("failed", error="no answer")), "WARNING", "event=failed"),
    ],
)
def test_a_cycle_is_one_line(caplog, cycle, level, begins):
    with caplog.at_level(logging.DEBUG, "sluice"):
        log_report(cycle)
    (record,) = caplog.records
    assert record.levelname == level
    assert record.getMessage().startswith(begins)


def test_repairs_are_lines_of_their_own(caplog):
    with caplog.at_level(logging.DEBUG, "sluice"):
        log_report(report(events=("unfulfilled: after 120 s counts has 1 of 2",)))
    assert [record.levelname for record in caplog.records] == ["DEBUG", "WARNING"]


def test_a_value_with_spaces_is_quoted_and_an_unknown_one_left_out():
    assert line({"a": 1, "b": None, "c": 'two "words"', "d": True}) == 'a=1 c="two \\"words\\"" d=true'


@pytest.fixture
def server():
    pytest.importorskip("prometheus_client")
    found = MetricsServer(0, run="shop")
    yield found
    found.close()


def scrape(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    assert all('run="shop"' in text for text in lines if not text.startswith(("#", "sluice_build_info")))
    lines = [text.replace('{run="shop"}', "").replace(',run="shop"', "").replace('run="shop",', "") for text in lines]
    return dict(text.rsplit(" ", 1) for text in lines if not text.startswith("#"))


def test_metrics_show_the_last_cycle_in_base_units(server):
    server(report(DONE, target=4, input_rate=290.0, busy=0.9, latency_s=2.5, lag=None))
    found = scrape(server)
    assert (found["sluice_executors"], found["sluice_executors_target"]) == ("1.0", "4.0")
    assert found['sluice_input_records_per_second{query="counts"}'] == "290.0"
    assert found['sluice_latency_seconds{query="counts"}'] == "2.5"
    assert found['sluice_cycles_total{outcome="scaled"}'] == "1.0"
    assert found['sluice_cycles_total{outcome="failed"}'] == "0.0"
    assert not any(name.startswith("sluice_lag_records{") for name in found)


def test_a_cycle_counts_once_and_a_request_that_was_not_fulfilled_apart(server):
    server(report(WAITING, target=4))
    server(report(WAITING, changed("unfulfilled", observed=2), target=4))
    found = scrape(server)
    assert found['sluice_cycles_total{outcome="waiting"}'] == "1.0"
    assert found['sluice_cycles_total{outcome="unfulfilled"}'] == "0.0"
    assert found["sluice_requests_unfulfilled_total"] == "1.0"


def test_what_is_unknown_now_and_queries_that_ended_are_not_shown(server):
    server(report(input_rate=290.0))
    server(report(query="other", latency_s=1.0))
    found = scrape(server)
    assert not any("counts" in name for name in found)
    assert found['sluice_latency_seconds{query="other"}'] == "1.0"


def test_a_port_in_use_is_bad_input_and_a_closed_one_can_be_used_again(server):
    with pytest.raises(BadInputError, match=f"port {server.port}"):
        MetricsServer(server.port)
    first = MetricsServer(0)
    first.close()
    MetricsServer(first.port).close()
