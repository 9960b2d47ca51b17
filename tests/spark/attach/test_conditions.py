"""What a session must look like: refusals name the setting and what to set."""

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError

from sluice.errors import BadInputError
from sluice.spark.attach import AttachSettings, conditions
from sluice.spark.attach.conditions import POD_VERBS, check_rights, check_settings, read_session
from sluice.spark.attach.defaults import (
    MOST_EXECUTORS,
    choose_interval,
    choose_max_executors,
    cluster_manager,
    find_executor_size,
)
from sluice.spark.internals import MissingCallError

DRAINS = {"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "true"}


@pytest.mark.parametrize(
    ("master", "settings", "said"),
    [
        ("yarn", {"spark.dynamicAllocation.enabled": "true"}, "set spark.dynamicAllocation.enabled=false"),
        ("local[4]", {}, "'local.4.', which has no executors"),
        ("local", {}, "no executors to add"),
        (
            "spark://here:7077",
            {"spark.cores.max": "6", "spark.executor.cores": "2"},
            "no more than 3 executors of 2 cores .* max_executors is 4; set spark.cores.max=8 or leave it out",
        ),
    ],
)
def test_what_cannot_scale_is_refused_with_what_to_set(master, settings, said):
    with pytest.raises(BadInputError, match=said):
        check_settings(master, settings, 4)


@pytest.mark.parametrize(
    ("master", "settings", "advice"),
    [
        ("k8s://here", DRAINS, []),
        ("spark://here:7077", {**DRAINS, "spark.executor.cores": "1", "spark.cores.max": "4"}, []),
        ("spark://here:7077", {**DRAINS, "spark.executor.cores": "1"}, []),
        ("local-cluster[2,4,1024]", DRAINS, []),
        ("spark://here:7077", DRAINS, ["spark.executor.cores is not set"]),
        ("yarn", {}, ["spark.decommission.enabled is not true"]),
        ("yarn", {"spark.decommission.enabled": "true"}, ["spark.storage.decommission.enabled is not true"]),
        (
            "yarn",
            {"spark.dynamicAllocation.enabled": "false", "spark.cores.max": "1", **DRAINS},
            [],
        ),
    ],
)
def test_what_costs_something_is_said(master, settings, advice):
    found = check_settings(master, settings, 4)
    assert [sentence[: len(start)] for sentence, start in zip(found, advice, strict=True)] == advice


def test_what_kubernetes_forbids_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(conditions, "denied_pod_verbs", lambda _, verbs: [verb for verb in verbs if verb != "list"])
    with pytest.raises(BadInputError, match=r"does not let .* create, delete, watch pods .*rbac\.yaml") as refused:
        check_rights(None, "k8s://https://here")
    assert "\n" not in str(refused.value)
    check_rights(None, "yarn")


@pytest.mark.parametrize("error", [Py4JError("timeout"), MissingCallError("Spark 9 has no client")])
def test_rights_that_cannot_be_asked_for_forbid_nothing(monkeypatch, caplog, error):
    def fail(_spark, verbs):
        assert verbs == POD_VERBS
        raise error

    monkeypatch.setattr(conditions, "denied_pod_verbs", fail)
    check_rights(None, "k8s://https://here")
    assert [str(error) in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"min_executors": 0}, "min_executors must be at least 1 .* got 0"),
        ({"min_executors": 3, "max_executors": 2}, "max_executors must be at least min_executors .3., got 2"),
        ({"initial_executors": 9}, "initial_executors must be from min_executors .1. to max_executors .4., got 9"),
        ({"interval_s": 0}, "interval must be above 0, got 0"),
        ({"cooldown_s": -1}, "cooldown must not be negative, got -1"),
    ],
)
def test_settings_fail_early(settings, said):
    with pytest.raises(BadInputError, match=said):
        AttachSettings(**settings)


@pytest.mark.parametrize(
    ("present", "working", "first"),
    [(8, False, 2), (0, False, 2), (3, True, 3), (8, True, 4), (0, True, 2)],
)
def test_a_running_job_begins_with_what_it_has_and_another_with_the_fewest(present, working, first):
    assert AttachSettings(min_executors=2).first_executors(present, working=working) == first
    assert AttachSettings(initial_executors=4).first_executors(present, working=working) == 4


@pytest.mark.parametrize(
    ("master", "settings", "present", "chosen"),
    [
        ("spark://here:7077", {"spark.cores.max": "12", "spark.executor.cores": "2"}, 0, 6),
        ("spark://here:7077", {"spark.executor.cores": "2"}, 7, 7),
        ("spark://here:7077", {"spark.executor.cores": "2"}, 0, MOST_EXECUTORS),
        ("yarn", {"spark.executor.instances": "1", "spark.cores.max": "2", "spark.executor.cores": "1"}, 1, 4),
        ("yarn", {"spark.executor.instances": "10"}, 1, 10),
        ("k8s://https://here", {"spark.dynamicAllocation.maxExecutors": "20"}, 1, 20),
        ("k8s://https://here", {"spark.dynamicAllocation.maxExecutors": "infinity"}, 1, 4),
    ],
)
def test_the_most_executors_are_what_the_cluster_may_give(master, settings, present, chosen):
    assert choose_max_executors(master, settings, present, least=1).value == chosen
    assert choose_max_executors(master, settings, present, least=30).value == 30


@pytest.mark.parametrize(
    ("triggers_s", "interval_s"), [([], 10.0), ([1.0], 5.0), ([10.0], 20.0), ([10.0, 60.0], 120.0)]
)
def test_an_interval_has_two_triggers_of_the_slowest_query(triggers_s, interval_s):
    assert choose_interval(triggers_s).value == interval_s


@pytest.mark.parametrize(
    ("master", "name"),
    [
        ("spark://a:7077", "standalone"),
        ("yarn", "YARN"),
        ("k8s://a", "Kubernetes"),
        ("local-cluster[2]", "local-cluster"),
    ],
)
def test_cluster_managers_are_named(master, name):
    assert cluster_manager(master) == name


@pytest.mark.parametrize(
    ("master", "settings", "size"),
    [
        ("spark://here:7077", {}, "all cores of a worker, 1g"),
        ("spark://here:7077", {"spark.executor.cores": "2"}, "2 cores, 1g"),
        ("yarn", {"spark.executor.memory": "4g"}, "1 cores, 4g"),
        ("k8s://https://here", {"spark.executor.cores": "4"}, "4 cores, 1g"),
    ],
)
def test_the_size_of_executors_is_said(master, settings, size):
    assert find_executor_size(master, settings).value == size


class Session:
    """As far as `read_session` looks at one."""

    readStream = _jsparkSession = None  # noqa: N815

    def __init__(self, settings):
        running = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
        conf = SimpleNamespace(get=settings.get)
        self.sparkContext = SimpleNamespace(_jsc=running, master="yarn", getConf=lambda: conf)


@pytest.mark.parametrize("written", ["true", "True", " TRUE"])
def test_switches_of_spark_are_read_as_spark_reads_them(written):
    _, settings = read_session(Session({"spark.decommission.enabled": written}))
    assert settings == {"spark.decommission.enabled": "true"}
