"""What `attach` opens, keeps and closes, with everything of Spark replaced."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from sluice.control.decider import Decider
from sluice.control.memory import MemoryStore
from sluice.errors import BadInputError
from sluice.model import Observation, OperatorMetrics, Recommendation
from sluice.policies.conttune import ContTune
from sluice.protocol import policies
from sluice.spark import attach as module
from sluice.spark.attach import attach
from sluice.spark.attach.suitability import NEVER, ONE_QUERY, OneQuery
from sluice.testing.observations import steady_run
from tests.spark.attach.test_conditions import DRAINS

MASTER = "spark://here:7077"


@pytest.fixture
def spark(monkeypatch):
    class Cluster:
        def __init__(self, _spark, drains):
            pass

        def present(self):
            return []

        def has_jobs(self):
            return False

    monkeypatch.setattr(module, "read_session", lambda _: (MASTER, {"spark.executor.cores": "1", **DRAINS}))
    monkeypatch.setattr(module, "ClusterExecutors", Cluster)
    running = []
    monkeypatch.setattr(module, "ApplicationQueries", lambda _: SimpleNamespace(running=lambda: running))
    monkeypatch.setattr(module, "AttachedEngine", lambda *_: SimpleNamespace(clock=None))
    context = SimpleNamespace(applicationId="app-1", appName="shop")
    return SimpleNamespace(sparkContext=context, running=running)


def test_a_start_that_fails_half_way_closes_what_it_opened(spark, monkeypatch, tmp_path):
    closed = []

    class Server:
        def __init__(self, port, host, run):
            pass

        def close(self):
            closed.append("metrics")

    monkeypatch.setattr(module, "MetricsServer", Server)
    (tmp_path / "memory.json").write_text("not JSON")
    with pytest.raises(BadInputError, match="is not JSON"):
        attach(spark, metrics_port=0, memory=tmp_path / "memory.json", journal=tmp_path / "journal.jsonl")
    assert closed == ["metrics"]
    assert module._attached == {}


def test_a_port_that_is_taken_leaves_no_journal_open(spark, monkeypatch, tmp_path):
    closed = []

    class Journal(module.FileJournal):
        def close(self):
            closed.append(self.path.name)
            super().close()

    monkeypatch.setattr(module, "FileJournal", Journal)
    pytest.importorskip("prometheus_client")
    taken = module.MetricsServer(0)
    try:
        with pytest.raises(BadInputError, match=f"port {taken.port}"):
            attach(spark, metrics_port=taken.port, journal=tmp_path / "journal.jsonl")
    finally:
        taken.close()
    assert closed == ["journal.jsonl"]
    assert module._attached == {}


def test_of_two_threads_that_attach_at_once_one_is_refused(spark, monkeypatch):
    """Old code let both in: each saw no other while both counted executors."""
    both_are_in = threading.Barrier(2)
    let_go = threading.Event()

    def meet():
        with suppress(threading.BrokenBarrierError):
            both_are_in.wait(0.3)

    monkeypatch.setattr(module.ClusterExecutors, "present", lambda _: meet() or [])
    monkeypatch.setattr(module.Attachment, "_watch", lambda _: let_go.wait())

    def try_to_attach():
        try:
            return attach(spark)
        except BadInputError as error:
            return str(error)

    try:
        with ThreadPoolExecutor(2) as threads:
            found = [one.result() for one in [threads.submit(try_to_attach) for _ in range(2)]]
    finally:
        let_go.set()
        module._attached.clear()
    refused = [one for one in found if isinstance(one, str)]
    assert refused == ["application 'app-1' is attached already; detach() the first before the next"]


def test_a_policy_with_sizes_is_refused(spark):
    class Sized(ContTune):
        recommends_sizes = True

    with pytest.raises(BadInputError, match="cannot apply instance sizes"):
        attach(spark, Sized())


@pytest.mark.parametrize("name", sorted(policies.names()))
def test_what_a_run_has_learned_is_used_by_attach_and_the_other_way_round(tmp_path, name):
    """The wrappers of `attach` keep their own memory beside the policy's, not around it."""
    policy = policies.create(name)
    store = MemoryStore(tmp_path / "memory.json", name)
    learned: dict = {}
    for seen in steady_run():
        _, learned = policy.decide(seen, learned)
    store.save(learned)
    learned = store.load()

    asked, answered = [], []

    class Spy:
        def decide(self, observation, memory):
            asked.append(memory)
            recommendation, kept = policy.decide(observation, memory)
            answered.append(kept)
            return recommendation, kept

    one_query = Observation(time_s=900, interval_s=10, operators={"map": steady_run()[-1].operators["map"]}, edges=())
    wrapped = module._wrapped(Spy(), name, 30.0, module.AttachSettings())
    _, kept = wrapped.decide(one_query, learned)
    assert asked == [learned]
    store.save(kept)

    again = store.load()
    assert {key: value for key, value in again.items() if not key.startswith("@")} == _as_saved(answered[0])
    policy.decide(steady_run()[-1], again)


def _as_saved(memory):
    return json.loads(json.dumps(memory))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"objective": 30}, "objective must look like 'latency<30s', got 30"),
        ({"max_executors": "3"}, "max_executors must be a whole number, got '3'"),
        ({"min_executors": 1.5}, "min_executors must be a whole number, got 1.5"),
        ({"initial_executors": True}, "initial_executors must be a whole number, got True"),
        ({"interval": "soon"}, "interval must be seconds or a time such as '30s', '5m' or '2h', got 'soon'"),
        ({"interval": "-5s"}, "interval must be above 0, got -5"),
        ({"cooldown": None}, "cooldown must be seconds .* got None"),
        ({"cooldown": -1}, "cooldown must not be negative, got -1"),
        ({"idle": [60]}, "idle must be seconds .* got .60."),
        ({"fulfil_within": float("nan")}, "fulfil_within must be seconds .* got nan"),
        ({"dry_run": "no"}, "dry_run must be True or False, got 'no'"),
        ({"policy": None}, "policy must be a name .see 'sluice policies'. or an object with decide.*, got None"),
        ({"policy": ContTune}, "policy must be a name .* got <class"),
        ({"policy": "ds3"}, "unknown policy 'ds3'"),
        ({"policy_settings": [1]}, "policy_settings must be a dictionary, got .1."),
        ({"policy_settings": {"speed": 1}}, "has no parameter 'speed'"),
        ({"policy": ContTune(), "policy_settings": {"alpha": 1}}, "policy_settings go with the name of a policy"),
        ({"policy": "random-search"}, "'random-search' is not for attach: it tries .* at random .*; use ds2"),
        ({"max_executors": 3_000_000_000}, "max_executors must be at most 2147483647, got 3000000000"),
        ({"interval": "1us"}, "interval must be seconds .* got '1us'"),
        ({"interval": 1e-6}, "interval must be at least 0.1 s, got 1e-06"),
        ({"interval": "1e999"}, "interval must be seconds .* got '1e999'"),
        ({"objective": "latency<1e999s"}, "objective: the latency must be seconds .* got '1e999s'"),
        ({"shadow": 5}, "shadow must be the names of policies, got 5"),
        ({"shadow": None}, "shadow must be the names of policies, got None"),
        ({"shadow": ["ds2", 3]}, "a shadow is the name of a policy, got 3"),
        ({"journal": "hdfs://name/j.jsonl"}, "journal must be .* on the driver's machine, got the address 'hdfs://"),
        ({"memory": "s3a://bucket/m.json"}, "memory must be .* on the driver's machine, got the address 's3a://"),
        ({"journal": "/dev/null"}, "journal must be the path of a file, got the device '/dev/null'"),
        ({"memory": "/dev/zero"}, "memory must be the path of a file, got the device '/dev/zero'"),
        ({"journal": "a\0b"}, "journal must be the path of a file, got 'a.x00b'"),
        ({"journal": "j" * 5000}, "journal must be the path of a file, got 'j+': File name too long"),
        ({"journal": "one", "memory": "./one"}, "memory must be another file than journal, got 'one' for both"),
        ({"metrics_port": 0, "metrics_host": "no.such.host.invalid"}, "cannot serve metrics on port 0 of no.such.host"),
        ({"metrics_port": 0, "metrics_host": "h" * 300}, "cannot serve metrics on port 0 of hhh"),
        ({"dashboard": True, "dashboard_host": "h" * 300}, "cannot serve the dashboard on port"),
        ({"journal": 5}, "journal must be the path of a file, got 5"),
        ({"journal": "/proc/nothing/journal.jsonl"}, "cannot write journal '/proc/nothing/journal.jsonl': "),
        ({"journal": "/"}, "journal must be the path of a file, got the folder '/'"),
        ({"memory": "/proc/nothing/memory.json"}, "cannot write memory '/proc/nothing/memory.json': "),
        ({"memory": ""}, "memory must be the path of a file, got ''"),
        ({"dashboard": "yes"}, "dashboard must be True or False, got 'yes'"),
        ({"dashboard_port": 70_000}, "dashboard_port must be from 0 .* to 65535, got 70000"),
        ({"dashboard_token": "short"}, "dashboard_token must be a text of at least 8 letters, digits and signs"),
        ({"dashboard_token": "two words"}, "dashboard_token must be a text of at least 8 .*, without spaces"),
        ({"dashboard_token": "a line's end\n"}, "dashboard_token must be a text of at least 8 .*, without spaces"),
        ({"metrics_host": ""}, "metrics_host must be an address to listen on, got ''"),
        ({"metrics_port": "9000"}, "metrics_port must be a whole number, got '9000'"),
        ({"metrics_port": 70_000}, "metrics_port must be from 0 .* to 65535, got 70000"),
    ],
)
def test_misuse_is_one_line_that_names_the_argument(spark, monkeypatch, arguments, said):
    started = []
    monkeypatch.setattr(module.Attachment, "_start", lambda self: started.append(self))
    with pytest.raises(BadInputError, match=said) as refused:
        attach(spark, **arguments)
    assert "\n" not in str(refused.value)
    assert started == []
    assert module._attached == {}


@pytest.mark.parametrize(
    "content", [b"a note of mine, without a line's end", b'{"version": 1}\n', b"\x89PNG\r\n\x00\n\x01"]
)
def test_a_file_of_somebody_else_is_not_made_a_journal(spark, tmp_path, content):
    (tmp_path / "mine").write_bytes(content)
    with pytest.raises(BadInputError, match=r"journal '.*mine' has something else in it; choose another file"):
        attach(spark, journal=tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == content


def test_a_memory_that_is_no_text_is_one_line(spark, tmp_path):
    (tmp_path / "mine").write_bytes(b"\x89PNG\xff")
    with pytest.raises(BadInputError, match=r"memory '.*mine' is not JSON"):
        attach(spark, memory=tmp_path / "mine")


def test_a_path_may_begin_at_home(spark, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    started(spark, monkeypatch, journal="~/journal.jsonl")
    assert (tmp_path / "journal.jsonl").exists()


def test_metrics_may_listen_on_a_newer_address(spark, monkeypatch):
    pytest.importorskip("prometheus_client")
    server = module.MetricsServer(0, "::1")
    try:
        assert server.port
    finally:
        server.close()


@pytest.mark.parametrize("given", [None, "spark", SimpleNamespace()])
def test_what_is_no_session_is_refused(given):
    with pytest.raises(BadInputError, match="attach needs a SparkSession, got "):
        attach(given)


def started(spark, monkeypatch, **arguments):
    monkeypatch.setattr(module.Attachment, "_start", lambda self: None)
    monkeypatch.setattr(module, "_attached", {})
    return attach(spark, **arguments)


def test_times_may_be_written_with_their_units(spark, monkeypatch):
    settings = started(spark, monkeypatch, interval="30s", cooldown="2m", idle="1h", fulfil_within=90)._settings
    assert (settings.interval_s, settings.cooldown_s) == (30, 120)
    assert (settings.idle_s, settings.fulfil_within_s) == (3600, 90)


def query(trigger_s):
    return SimpleNamespace(trigger_interval_s=lambda: trigger_s)


def test_what_was_not_asked_for_is_chosen_and_said(spark, monkeypatch, caplog):
    spark.running += [query(30.0), query(None)]
    with caplog.at_level("INFO", "sluice"):
        settings = started(spark, monkeypatch)._settings
    assert (settings.interval_s, settings.max_executors) == (60.0, 4)
    chosen = [one.getMessage() for one in caplog.records if "event=chose" in one.getMessage()]
    assert [text.split(" why=")[0] for text in chosen] == [
        "event=chose what=cluster_manager value=standalone",
        'event=chose what=executor_size value="1 cores, 1g"',
        "event=chose what=release value=decommission",
        "event=chose what=max_executors value=4",
        "event=chose what=interval_s value=60.0",
    ]


def test_whole_numbers_of_numpy_are_whole_numbers(spark, monkeypatch):
    numpy = pytest.importorskip("numpy")
    assert started(spark, monkeypatch, max_executors=numpy.int64(3))._settings.max_executors == 3


def test_what_was_asked_for_stays(spark, monkeypatch, caplog):
    spark.running += [query(30.0)]
    with caplog.at_level("INFO", "sluice"):
        settings = started(spark, monkeypatch, interval=1, max_executors=9)._settings
    assert (settings.interval_s, settings.max_executors) == (1.0, 9)
    assert "what=interval_s" not in caplog.text


@pytest.mark.parametrize("name", ["conttune", "dragster", "qescalor"])
def test_policies_that_learn_per_operator_are_for_one_query(spark, monkeypatch, name):
    spark.running += [query(1.0)]
    started(spark, monkeypatch, policy=name)
    spark.running += [query(1.0)]
    with pytest.raises(BadInputError, match=f"'{name}' is for applications of one query, this one runs 2: .*; use ds2"):
        started(spark, monkeypatch, policy=name)


def test_the_docs_say_of_every_policy_what_it_is_for():
    docs = (Path(__file__).parents[3] / "docs" / "attach.md").read_text()
    section = docs.partition("## Which policy")[2].partition("\n## ")[0]
    of_any_number, _, of_one = section.partition("work on any number of queries")
    one_query, _, never = of_one.partition("are refused when more run")
    for name in policies.names():
        where = never if name in NEVER else one_query if name in ONE_QUERY else of_any_number
        assert f"`{name}`" in where, name


def test_a_running_attachment_does_not_change_to_a_policy_that_is_not_for_it():
    with pytest.raises(BadInputError, match="'random-search' is not for attach"):
        module._decider("random-search", {}, None, module.AttachSettings())
    assert module._decider("conttune", {}, None, module.AttachSettings())


def test_a_second_query_that_comes_later_makes_such_a_policy_hold():
    class Inner:
        def decide(self, observation, memory):
            return Recommendation.hold("asked"), memory

    policy = OneQuery(inner=Inner(), name="conttune")

    def running(names):
        operators = {name: OperatorMetrics(parallelism=1) for name in names}
        return Observation(time_s=10, interval_s=10, operators=operators)

    assert Decider(policy).ask(running("a"), {}).recommendation.reason == "asked"
    assert "is for applications of one query, this one runs 2" in Decider(policy).ask(running("ab"), {}).problem


def test_an_attachment_that_has_ended_is_forgotten(spark):
    attachment = attach(spark)
    attachment.detach()
    assert module._attached == {}
