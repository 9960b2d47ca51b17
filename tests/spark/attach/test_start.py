"""What `attach` opens, keeps and closes, with everything of Spark replaced."""

import threading
from types import SimpleNamespace

import pytest

from sluice.control.memory import MemoryStore
from sluice.errors import BadInputError
from sluice.policies.conttune import ContTune
from sluice.spark import attach as module
from sluice.spark.attach import attach
from sluice.spark.attach.wrappers import IdleRelease, LatencyObjective
from sluice.testing.observations import steady_run


@pytest.fixture
def spark(monkeypatch):
    class Cluster:
        def __init__(self, _spark):
            pass

        def present(self):
            return []

        def has_jobs(self):
            return False

    monkeypatch.setattr(module, "check_session", lambda *_: [])
    monkeypatch.setattr(module, "ClusterExecutors", Cluster)
    monkeypatch.setattr(module, "ApplicationQueries", lambda _: SimpleNamespace(running=list))
    monkeypatch.setattr(module, "AttachedEngine", lambda *_: SimpleNamespace(clock=None))
    context = SimpleNamespace(applicationId="app-1", appName="shop")
    return SimpleNamespace(sparkContext=context, streams=SimpleNamespace(active=[]))


def test_a_start_that_fails_half_way_closes_what_it_opened(spark, monkeypatch, tmp_path):
    closed = []

    class Server:
        def __init__(self, port):
            pass

        def close(self):
            closed.append("metrics")

    monkeypatch.setattr(module, "MetricsServer", Server)
    (tmp_path / "memory.json").write_text("not JSON")
    with pytest.raises(BadInputError, match="is not JSON"):
        attach(spark, metrics_port=0, memory=tmp_path / "memory.json", journal=tmp_path / "journal.jsonl")
    assert closed == ["metrics"]
    assert module._attached == {}


def test_a_port_that_is_taken_leaves_no_journal_open(spark, tmp_path):
    pytest.importorskip("prometheus_client")
    taken = module.MetricsServer(0)
    try:
        with pytest.raises(BadInputError, match=f"port {taken.port}"):
            attach(spark, metrics_port=taken.port, journal=tmp_path / "journal.jsonl")
    finally:
        taken.close()
    assert threading.active_count() < 50
    assert module._attached == {}


def test_a_policy_with_sizes_is_refused(spark):
    class Sized:
        recommends_sizes = True

    with pytest.raises(BadInputError, match="cannot apply instance sizes"):
        attach(spark, Sized())


def test_what_a_run_has_learned_is_used_by_attach_and_the_other_way_round(tmp_path):
    """The wrappers of `attach` keep their own memory beside the policy's, not around it."""
    policy = ContTune()
    learned: dict = {}
    for seen in steady_run():
        _, learned = policy.decide(seen, learned)
    store = MemoryStore(tmp_path / "memory.json", "conttune")
    store.save(learned)

    asked = []

    class Spy:
        def decide(self, observation, memory):
            asked.append(memory)
            return policy.decide(observation, memory)

    wrapped = IdleRelease(inner=LatencyObjective(inner=Spy(), latency_s=30.0), idle_s=60.0)
    _, kept = wrapped.decide(steady_run()[-1], store.load())
    assert asked == [learned]
    store.save(kept)
    _, again = policy.decide(steady_run()[-1], store.load())
    assert again.keys() >= learned.keys() - {"@idle", "@objective"}
