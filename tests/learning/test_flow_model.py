import numpy as np
import pytest
from scipy.optimize import approx_fprime

from sluice.learning.flow_model import OUT, FlowModel
from sluice.learning.throughput import LinearFunction, MinimumFunction, TanhFunction
from sluice.model import Topology


def chain(load=100.0, selectivity=2.0):
    return FlowModel(
        Topology.of(("map", "count"), (("map", "count"),)),
        {("map", "count"): LinearFunction(k=(selectivity,)), ("count", OUT): LinearFunction(k=(1.0,))},
        {("map", "count"): 1.0, ("count", OUT): 1.0},
        {"map": load},
    )


def diamond():
    """A source that splits, one branch that levels off, a join that waits for its slower input."""
    edges = (("s", "a"), ("s", "b"), ("a", "j"), ("b", "j"))
    return FlowModel(
        Topology.of(("s", "a", "b", "j"), edges),
        {
            ("s", "a"): LinearFunction(k=(0.7,)),
            ("s", "b"): LinearFunction(k=(0.3,)),
            ("a", "j"): TanhFunction(k1=90.0, k2=(0.012,)),
            ("b", "j"): LinearFunction(k=(1.8,)),
            ("j", OUT): MinimumFunction(k=(1.0, 1.2)),
        },
        {("s", "a"): 0.6, ("s", "b"): 0.4, ("a", "j"): 1.0, ("b", "j"): 1.0, ("j", OUT): 1.0},
        {"s": 100.0},
    )


def test_the_tightest_operator_decides_what_comes_out():
    flow = chain()
    assert float(flow.flows(np.array([200.0, 200.0])).out) == 200.0
    assert float(flow.flows(np.array([120.0, 200.0])).out) == 120.0
    assert float(flow.flows(np.array([200.0, 90.0])).out) == 90.0
    np.testing.assert_allclose(flow.demands(), [200.0, 200.0])


@pytest.mark.parametrize("flow", [chain(), diamond()], ids=["chain", "diamond"])
def test_gradient_of_the_lagrangian_agrees_with_finite_differences_away_from_kinks(flow):
    rng = np.random.default_rng(4)
    worst = 0.0
    for _ in range(300):
        y = rng.uniform(5, 220, len(flow.names))
        dual = rng.uniform(0, 2, len(flow.names)) * rng.integers(0, 2, len(flow.names))
        forward = approx_fprime(y, lambda at, dual=dual: float(flow.lagrangian(at, dual)), 1e-5)
        backward = approx_fprime(y, lambda at, dual=dual: float(flow.lagrangian(at, dual)), -1e-5)
        if np.abs(forward - backward).max() < 1e-4:
            worst = max(worst, float(np.abs(flow.gradient(y, dual) - forward).max()))
    assert worst < 1e-3


def test_without_prices_the_best_capacities_are_just_the_demands():
    np.testing.assert_allclose(chain().best_capacities(np.zeros(2), np.array([500.0, 500.0])), [200.0, 200.0])


def test_a_price_drives_a_capacity_to_the_face_of_its_box():
    np.testing.assert_allclose(chain().best_capacities(np.array([0.3, 0.0]), np.array([500.0, 400.0])), [500.0, 200.0])


@pytest.mark.parametrize("seed", range(6))
def test_no_random_point_of_the_box_that_holds_nothing_back_beats_the_best_capacities(seed):
    rng = np.random.default_rng(seed)
    flow = [chain(), diamond()][seed % 2]
    dual = rng.uniform(0, 2, len(flow.names)) * rng.integers(0, 2, len(flow.names))
    enough = flow.sufficient()
    most = enough * rng.uniform(1, 3, len(flow.names))
    best = flow.best_capacities(dual, most)
    tried = enough[:, None] + rng.uniform(0, 1, (len(flow.names), 2000)) * (most - enough)[:, None]
    assert float(flow.lagrangian(best, dual)) >= float(flow.lagrangian(tried, dual).max()) - 1e-9
    assert float(flow.flows(best).out) == pytest.approx(float(flow.flows(np.full(len(enough), np.inf)).out))


def test_without_shortage_prices_no_point_at_all_beats_the_best_capacities():
    flow = diamond()
    most = flow.sufficient() * 2
    tried = np.random.default_rng(0).uniform(0, 1, (4, 4000)) * most[:, None]
    none = np.zeros(4)
    best = float(flow.lagrangian(flow.best_capacities(none, most), none))
    assert best >= float(flow.lagrangian(tried, none).max()) - 1e-9
