"""`spark.sluice.*` as arguments of `attach`: what is read, what wins, what is refused."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError

from sluice.errors import BadInputError
from sluice.spark.attach import attach, configuration
from sluice.spark.attach.configuration import (
    SETTINGS,
    Configuration,
    parse_configuration,
    read_configuration,
    reads_configuration,
)


@pytest.mark.parametrize(
    ("key", "value", "argument", "expected"),
    [
        ("policy", "dhalion", "policy", "dhalion"),
        ("minExecutors", "2", "min_executors", 2),
        ("maxExecutors", " 8 ", "max_executors", 8),
        ("interval", "500ms", "interval", 0.5),
        ("interval", "10", "interval", 10.0),
        ("cooldown", "5m", "cooldown", 300.0),
        ("idle", "1.5h", "idle", 5400.0),
        ("objective", "latency<30s", "objective", "latency<30s"),
        ("journal", "/tmp/j.jsonl", "journal", "/tmp/j.jsonl"),
        ("metricsPort", "9100", "metrics_port", 9100),
        ("dryRun", "True", "dry_run", True),
    ],
)
def test_a_setting_is_an_argument_of_attach(key, value, argument, expected):
    assert parse_configuration({f"spark.sluice.{key}": value}).arguments == {argument: expected}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("maxExecutors", "many", "spark.sluice.maxExecutors must be a whole number, at least 1, got 'many'"),
        ("minExecutors", "0", "spark.sluice.minExecutors must be a whole number, at least 1, got '0'"),
        ("interval", "0s", "spark.sluice.interval must be above 0, got '0s'"),
        ("interval", "1ms", "spark.sluice.interval must be at least 0.1 s, got '1ms'"),
        (
            "journal",
            "hdfs://a/j",
            "spark.sluice.journal must be the path of a file on the driver's machine, got 'hdfs:",
        ),
        ("cooldown", "-5s", "spark.sluice.cooldown must not be negative, got '-5s'"),
        ("interval", "soon", "spark.sluice.interval must be a duration such as 30s, 5m or a number of seconds, "),
        ("dryRun", "yes", "spark.sluice.dryRun must be true or false, got 'yes'"),
        ("enabled", "1", "spark.sluice.enabled must be true or false, got '1'"),
        ("metricsPort", "70000", "spark.sluice.metricsPort must be a port, 0 to 65535, got '70000'"),
        ("objective", "fast", "spark.sluice.objective must look like 'latency<30s', got 'fast'"),
        ("journal", "", "spark.sluice.journal must not be empty, got ''"),
        ("maxExecutor", "3", "unknown setting 'spark.sluice.maxExecutor'; known: spark.sluice.cooldown"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_key_and_value(key, value, message):
    with pytest.raises(BadInputError) as refused:
        parse_configuration({f"spark.sluice.{key}": value})
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(BadInputError, match=r"maxExecutors must be at least spark.sluice.minExecutors \(4\), got 2"):
        parse_configuration({"spark.sluice.minExecutors": "4", "spark.sluice.maxExecutors": "2"})


def test_settings_of_others_are_left_alone():
    assert parse_configuration({"spark.master": "yarn", "spark.sluiceway": "x"}) == Configuration()


def test_every_setting_is_an_argument_of_attach():
    arguments = set(inspect.signature(attach).parameters)
    assert {setting.argument for setting in SETTINGS.values()} | {"policy_settings", "spark"} == arguments


def test_policy_settings_belong_to_the_policy_they_were_written_for():
    found = parse_configuration({"spark.sluice.policy.warm_up": "2", "spark.sluice.policy.least_drop": "1"})
    assert found.merged({})["policy_settings"] == {"warm_up": "2", "least_drop": "1"}
    assert found.merged({"policy_settings": {"warm_up": 3}})["policy_settings"] == {"warm_up": 3, "least_drop": "1"}
    assert found.merged({"policy": "sluice"})["policy_settings"] == {"warm_up": "2", "least_drop": "1"}
    assert found.merged({"policy": "dhalion"}) == {"policy": "dhalion"}


def test_policy_settings_of_a_wrong_type_are_left_to_attach():
    found = parse_configuration({"spark.sluice.policy.warm_up": "2"})
    assert found.merged({"policy_settings": [1]}) == {"policy_settings": [1]}


@pytest.fixture(autouse=True)
def settings_of_sessions(monkeypatch):
    monkeypatch.setattr(configuration, "session_settings", lambda spark: spark.settings)


def session(**settings: str) -> SimpleNamespace:
    running = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
    return SimpleNamespace(
        settings={f"spark.sluice.{key}": value for key, value in settings.items()},
        _jsparkSession=object(),
        sparkContext=SimpleNamespace(_jsc=running),
    )


def test_a_driver_that_does_not_answer_is_one_line(monkeypatch):
    def fail(_spark):
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr(configuration, "session_settings", fail)
    with pytest.raises(BadInputError, match="attach needs a running session; its driver does not answer: Answer from"):
        read_configuration(session())


def test_what_the_program_says_wins_and_the_rest_is_configured():
    @reads_configuration
    def attaching(spark, policy="ds2", *, max_executors=4, interval=10.0):
        return policy, max_executors, interval

    configured = session(maxExecutors="8", interval="5s", policy="dhalion")
    assert attaching(configured) == ("dhalion", 8, 5.0)
    assert attaching(configured, max_executors=2) == ("dhalion", 2, 5.0)
    assert attaching(configured, "ds2", interval=1.0) == ("ds2", 8, 1.0)
    assert attaching(spark=session()) == ("ds2", 4, 10.0)


STOPPED = SimpleNamespace(_jsparkSession=object(), sparkContext=SimpleNamespace(_jsc=None))


@pytest.mark.parametrize("spark", [None, SimpleNamespace(), STOPPED])
def test_what_is_no_session_of_this_driver_has_no_configuration(spark):
    assert read_configuration(spark) == Configuration()
