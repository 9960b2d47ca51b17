"""What an attachment tells: log lines and Prometheus metrics, from a cycle's journal entry."""

import logging
import urllib.request

import pytest

from sluice.errors import BadInputError
from sluice.spark.attach.prometheus import MetricsServer
from sluice.spark.attach.told import line, log_cycle


def entry(*, wanted=4, applied=None, dry_run=False, problem=None, query="counts", **metrics):
    return {
        "kind": "cycle",
        "time_s": 30.04,
        "observation": {"operators": {query: {"parallelism": 1, **metrics}}},
        "decision": {"reason": "ds2: counts 1 -> 4 for 290 rec/s at 90 each"},
        "problem": problem,
        "plan": {"parallelism": {query: wanted}},
        "cooling": False,
        "dry_run": dry_run,
        "applied": applied,
    }


DONE = {"changed": {"counts": [1, 4]}, "detail": "asked for 4 executors", "error": None}


@pytest.mark.parametrize(
    ("cycle", "level", "begins"),
    [
        (entry(applied=DONE), "INFO", "event=scaled time_s=30.0 executors=1 wanted=4 reason="),
        (entry(dry_run=True), "INFO", "event=would_scale"),
        (entry(wanted=1), "DEBUG", "event=held"),
        (entry(wanted=1, problem="policy failed"), "WARNING", "event=held"),
        (entry(applied={**DONE, "error": "no answer"}), "WARNING", "event=failed"),
    ],
)
def test_a_cycle_is_one_line(caplog, cycle, level, begins):
    with caplog.at_level(logging.DEBUG, "sluice"):
        log_cycle(cycle)
    (record,) = caplog.records
    assert record.levelname == level
    assert record.getMessage().startswith(begins)


def test_a_value_with_spaces_is_quoted_and_an_unknown_one_left_out():
    assert line({"a": 1, "b": None, "c": 'two "words"', "d": True}) == 'a=1 c="two \\"words\\"" d=true'


@pytest.fixture
def server():
    pytest.importorskip("prometheus_client")
    found = MetricsServer(0)
    yield found
    found.close()


def scrape(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return dict(text.rsplit(" ", 1) for text in lines if not text.startswith("#"))


def test_metrics_show_the_last_cycle_in_base_units(server):
    server(entry(applied=DONE, input_rate=290.0, busy=0.9, latency_s=2.5, lag=None))
    found = scrape(server)
    assert (found["sluice_executors"], found["sluice_executors_wanted"]) == ("1.0", "4.0")
    assert found['sluice_input_records_per_second{query="counts"}'] == "290.0"
    assert found['sluice_latency_seconds{query="counts"}'] == "2.5"
    assert found['sluice_cycles_total{outcome="scaled"}'] == "1.0"
    assert found['sluice_cycles_total{outcome="failed"}'] == "0.0"
    assert not any(name.startswith("sluice_lag_records{") for name in found)


def test_what_is_unknown_now_and_queries_that_ended_are_not_shown(server):
    server(entry(input_rate=290.0))
    server(entry(query="other", latency_s=1.0))
    found = scrape(server)
    assert not any("counts" in name for name in found)
    assert found['sluice_latency_seconds{query="other"}'] == "1.0"


def test_a_port_in_use_is_bad_input_and_a_closed_one_can_be_used_again(server):
    with pytest.raises(BadInputError, match=f"port {server.port}"):
        MetricsServer(server.port)
    first = MetricsServer(0)
    first.close()
    MetricsServer(first.port).close()
