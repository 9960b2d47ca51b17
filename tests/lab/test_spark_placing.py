"""When tasks on real workers are placed anew."""

from sluice.lab.spark_placing import HOT_WINDOWS, QUIET_WINDOWS, WorkerReview
from sluice.model import Cluster, Observation, OperatorMetrics, Target, WorkerMetrics

TARGET = Target(parallelism={"a": 1})


def window(**busy: float) -> Observation:
    workers = {name: WorkerMetrics(slots=4, busy=share) for name, share in busy.items()}
    return Observation(time_s=10, interval_s=10, operators={"a": OperatorMetrics(parallelism=1)}, workers=workers)


def test_workers_that_go_or_join_are_a_reason_at_once():
    clusters = [Cluster.uniform(count, 4) for count in (2, 1, 1, 3)]
    review = WorkerReview(lambda: clusters.pop(0))
    found = [review(window(), TARGET) for _ in range(4)]
    assert [one.outdated for one in found] == [None, "worker w1 is gone", None, "worker w1 joined, worker w2 joined"]
    assert [one.slots for one in found] == [8, 4, 4, 12]


def test_a_worker_must_stay_hot_and_gets_time_after_that():
    review = WorkerReview(lambda: Cluster.uniform(2, 4))
    hot, mild = window(w0=0.95, w1=0.3), window(w0=0.8, w1=0.3)
    assert all(review(hot, TARGET).outdated is None for _ in range(HOT_WINDOWS - 1))
    assert review(mild, TARGET).outdated is None
    assert all(review(hot, TARGET).outdated is None for _ in range(HOT_WINDOWS - 1))
    assert review(hot, TARGET).outdated == "worker w0 was 95% busy for 3 windows, others have room"
    assert all(review(hot, TARGET).outdated is None for _ in range(QUIET_WINDOWS - 1))
    assert review(hot, TARGET).outdated is not None


def test_a_cluster_that_is_busy_everywhere_has_no_hot_worker():
    review = WorkerReview(lambda: Cluster.uniform(2, 4))
    assert all(review(window(w0=1.0, w1=0.9), TARGET).outdated is None for _ in range(9))
