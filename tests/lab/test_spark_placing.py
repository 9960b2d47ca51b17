"""When tasks on real workers are placed anew."""

import pytest

from sluice.errors import BadInputError
from sluice.lab.spark_placing import (
    HOT_WINDOWS,
    QUIET_WINDOWS,
    SparkPlacement,
    WorkerReview,
    hot_worker,
    needed_workers,
    units_of,
)
from sluice.model import (
    Cluster,
    Graph,
    Observation,
    Operator,
    OperatorMetrics,
    Placement,
    Target,
    WorkerMetrics,
)
from sluice.placement import placers
from sluice.placement.planner import UnitCosts
from sluice.placement.request import Profile

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


def test_workers_that_went_while_no_driver_ran_are_a_reason_once():
    earlier = Placement(tasks={"w0": {"a": 1}, "w7": {"a": 1}, "w8": {}, "expected-1": {"a": 1}})
    placement = SparkPlacement(placer=placers.create("evenly"))
    review = placement.review(lambda: Cluster.uniform(2, 4), earlier)
    assert [review(window(), TARGET).outdated for _ in range(2)] == ["worker w7 is gone", None]
    same = placement.review(lambda: Cluster.uniform(2, 4), Placement(tasks={"w0": {"a": 1}}))
    assert same(window(), TARGET).outdated is None


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


def test_a_profile_that_a_hot_worker_proves_wrong_is_given_up():
    cluster = Cluster.uniform(2, 4)
    asked: list[float] = []

    class Spy:
        def place(self, request):
            asked.append(request.loads["a"].cpu)
            return placers.create("evenly").place(request)

    placement = SparkPlacement(placer=Spy(), units={"a": UnitCosts(cpu=1.0)})
    review = placement.review(lambda: cluster)
    plan = placement.planner(lambda: cluster, review)
    seen = window(w0=0.95, w1=0.3).model_copy(
        update={"operators": {"a": OperatorMetrics(parallelism=1, input_rate=10, arrival_rate=10, cpu=0.5)}}
    )
    graph = Graph(operators=(Operator(name="a"),))
    plan(graph, {"a": 1}, seen, None)
    for _ in range(HOT_WINDOWS):
        review(seen, TARGET)
    plan(graph, {"a": 1}, seen, None)
    assert asked == [10.0, 0.5]


def test_strategies_get_no_network_costs_where_records_pass_through_shared_files():
    requests = []

    class Spy:
        def place(self, request):
            requests.append(request)
            return placers.create("evenly").place(request)

    placement = SparkPlacement(placer=Spy(), units={"a": UnitCosts(cpu=1.0, io=2.0, net=3.0)})
    plan = placement.planner(lambda: Cluster.uniform(2, 4))
    plan(Graph(operators=(Operator(name="a"),)), {"a": 2}, None, None)
    assert requests[0].loads["a"].model_dump() == {"cpu": 1.0, "io": 2.0, "net": 0.0}


def test_a_worker_is_hot_when_its_cores_are_used_up_though_slots_are_free():
    def worker(cpu):
        return WorkerMetrics(slots=4, busy=0.5, cpu=cpu, cpu_capacity=0.5)

    seen = window().model_copy(update={"workers": {"w0": worker(0.49), "w1": worker(0.1)}})
    assert hot_worker(seen) == "w0"


def profiled(*names: str, **fields: object) -> Profile:
    return Profile.parse({"operators": [{"name": name, "parallelism": 1, **fields} for name in names]}, "profile")


def test_a_profile_of_other_operators_or_without_costs_is_bad_input():
    costs = {"capacity": {1: 100.0}, "selectivity": 1.0, "cpu_s_per_record": 0.5}
    assert units_of(profiled("a", "b+c", costs=costs), ["a", "b", "c"])["a"].cpu == 0.5
    with pytest.raises(BadInputError, match="the profile has operators b, x, the pipeline a, b"):
        units_of(profiled("b", "x", costs=costs), ["a", "b"])
    with pytest.raises(BadInputError, match="no costs per record"):
        units_of(profiled("a", cpu=1.0), ["a"])


@pytest.mark.parametrize(
    ("instances", "names"),
    [(1, ["w1"]), (4, ["w1"]), (5, ["w0", "w1"]), (9, ["w0", "w1", "expected-1"]), (99, ["w0", "w1", "expected-1"])],
)
def test_an_elastic_placement_uses_as_few_workers_as_have_the_slots(instances, names):
    held = Placement(tasks={"w1": {"a": 2}, "w0": {"a": 1}})
    found = needed_workers(Cluster.uniform(2, 4), instances, held, most=3)
    assert [worker.name for worker in found.workers] == names


def test_a_worker_that_was_released_is_no_reason_to_place_anew():
    clusters = [Cluster.uniform(count, 4) for count in (3, 2, 1, 2)]
    review = WorkerReview(lambda: clusters.pop(0), most_slots=12)
    placed = Target(parallelism={"a": 2}, placement=Placement(tasks={"w0": {"a": 1}, "w1": {"a": 1}}))
    waiting = Target(parallelism={"a": 2}, placement=Placement(tasks={"w0": {"a": 1}, "expected-1": {"a": 1}}))
    found = [review(window(), target) for target in (placed, placed, placed, waiting)]
    assert [one.outdated for one in found] == [None, None, "worker w1 is gone", "worker w1 joined"]
    assert {one.slots for one in found} == {12}
