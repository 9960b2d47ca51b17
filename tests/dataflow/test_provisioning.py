import pytest

from sluice.dataflow.provisioning import (
    ProvisioningState,
    full_busy_shares,
    interrupted,
    provisioning,
    same_load,
)
from tests.policies.jobs import job

KEPT = {"parallelism": 2, "input_rate": 1000.0, "busy": 0.6}


def chain(map_=None, **source):
    return job("source>map", source={**KEPT, **source}, map={**KEPT, **(map_ or {})}, interval_s=60.0)


@pytest.mark.parametrize(
    ("source", "state"),
    [
        ({"arrival_rate": 1000, "lag": 100, "lag_rate": 0}, ProvisioningState.KEEPING_UP),
        ({"arrival_rate": 1500, "lag": 30_000, "lag_rate": 500}, ProvisioningState.BEHIND),
        ({"arrival_rate": 1500, "lag": 500, "lag_rate": 500}, ProvisioningState.KEEPING_UP),
        ({"arrival_rate": 1500, "lag": 500, "lag_rate": 500, "backpressure": 0.4}, ProvisioningState.BEHIND),
        ({"arrival_rate": 1500, "backpressure": 0.4}, ProvisioningState.BEHIND),
        ({"backpressure": 0.4}, ProvisioningState.BEHIND),
        ({"backpressure": 0.05}, ProvisioningState.KEEPING_UP),
        ({"backpressure": None}, ProvisioningState.KEEPING_UP),
        ({"arrival_rate": 800, "lag": 30_000, "lag_rate": -200, "backpressure": 0.9}, ProvisioningState.CATCHING_UP),
        ({"arrival_rate": 1000, "lag": 30_000, "lag_rate": 0, "backpressure": 0.9}, ProvisioningState.KEEPING_UP),
        ({}, ProvisioningState.KEEPING_UP),
    ],
)
def test_the_state_of_a_job_follows_from_what_its_sources_leave_unread(source, state):
    assert provisioning(chain(**source)).state is state


def test_a_topic_between_operators_counts_as_well():
    found = provisioning(chain({"lag": 40_000, "lag_rate": 200}, arrival_rate=1000, lag=0, lag_rate=0))
    assert found.state is ProvisioningState.BEHIND
    assert found.why.startswith("map: lag grows by 200 of 1,200")


def test_how_busy_an_operator_is_at_its_limit_is_learned_from_a_window_that_began_with_lag():
    saturated = chain({"busy": 0.9}, arrival_rate=1500, lag=60_000, lag_rate=500, backpressure=0.5)
    assert full_busy_shares(saturated, ProvisioningState.BEHIND, {}) == {"map": 0.9}
    assert full_busy_shares(saturated, ProvisioningState.BEHIND, {"map": 0.95}) == {"map": 0.95}
    just_begun = chain({"busy": 0.9}, arrival_rate=1500, lag=30_000, lag_rate=500, backpressure=0.5)
    assert full_busy_shares(just_begun, ProvisioningState.BEHIND, {}) == {}


def test_a_window_after_a_change_in_which_no_operator_worked_for_long_was_interrupted():
    idle = chain(arrival_rate=1500, lag=60_000, lag_rate=500)
    assert interrupted(idle, {"source": 1, "map": 1})
    assert not interrupted(idle, {"source": 2, "map": 2})
    assert not interrupted(chain({"busy": 1.0}), {"source": 1, "map": 1})


def test_loads_are_the_same_within_five_percent():
    assert same_load({"s": 100.0}, {"s": 104.0})
    assert not same_load({"s": 100.0}, {"s": 110.0})
    assert not same_load({"s": 100.0}, {"t": 100.0})
    assert not same_load(None, {"s": 1.0})
