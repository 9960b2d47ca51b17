"""What every registered policy promises, whoever wrote it: found by the registry, checked with its defaults."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from sluice.model import Observation, Recommendation
from sluice.policy import EMPTY_MEMORY, Memory, Policy, policies
from tests.contracts.observations import runs, steady_run, unmeasured

some_examples = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(params=policies.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def policy(name: str) -> Policy:
    return policies.create(name)


def story(policy: Policy, observations: Sequence[Observation]) -> list[tuple[Recommendation, Memory]]:
    """Decisions one after the other, memory carried over as JSON, as it is when the controller restarts."""
    memory: Memory = EMPTY_MEMORY
    told = []
    for observation in observations:
        decision, memory = policy.decide(observation, memory)
        told.append((decision, memory))
        memory = json.loads(json.dumps(memory, allow_nan=False))
    return told


def assert_sound(decision: Recommendation, observation: Observation) -> None:
    assert decision.parallelism.keys() <= observation.operators.keys()
    assert all(isinstance(wish, int) and 1 <= wish <= 10**9 for wish in decision.parallelism.values())
    assert decision.sizes.keys() <= observation.operators.keys()
    assert re.search(r"\d", decision.reason), f"no number in the reason: {decision.reason!r}"
    assert "\n" not in decision.reason
    assert Recommendation.model_validate_json(decision.to_json()) == decision


def test_parameters_are_frozen_documented_and_plain(name: str, policy: Policy) -> None:
    assert (type(policy).__doc__ or "").strip(), f"{name} has no docstring"
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]
        if field.init:
            assert field.metadata.get("doc"), f"{name}: parameter {field.name} says nothing about itself"
            json.dumps(field.default, allow_nan=False)
    fields = [field.name for field in dataclasses.fields(policy) if field.init]  # type: ignore[arg-type]
    if fields:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(policy, fields[0], None)


def test_same_input_same_output(name: str, policy: Policy) -> None:
    again = policies.create(name)
    assert story(policy, steady_run()) == story(again, steady_run())


def test_what_is_given_in_is_never_changed(policy: Policy) -> None:
    memory: Memory = EMPTY_MEMORY
    for observation in steady_run():
        observed_before, memory_before = observation.to_json(), copy.deepcopy(memory)
        _, new_memory = policy.decide(observation, memory)
        assert observation.to_json() == observed_before
        assert memory == memory_before
        memory = new_memory


def test_decisions_are_sound_on_a_measured_job(policy: Policy) -> None:
    observations = steady_run()
    for (decision, _), observation in zip(story(policy, observations), observations, strict=True):
        assert_sound(decision, observation)


def test_memory_survives_a_round_trip_through_json(policy: Policy) -> None:
    carried: Memory = EMPTY_MEMORY
    for observation, (decision, memory) in zip(steady_run(), story(policy, steady_run()), strict=True):
        kept, carried = policy.decide(observation, carried)
        assert kept == decision
        assert json.loads(json.dumps(carried)) == json.loads(json.dumps(memory))


def test_holds_while_nothing_is_known(policy: Policy) -> None:
    for (decision, _), observation in zip(story(policy, unmeasured()), unmeasured(), strict=True):
        assert_sound(decision, observation)
        keeps = all(observation.parallelism[op] == wish for op, wish in decision.parallelism.items())
        assert keeps, f"wished {decision.parallelism} with nothing measured: {decision.reason}"


@pytest.mark.parametrize("name", policies.names())
@some_examples
@given(observations=runs())
def test_no_job_and_no_missing_metric_breaks_it(name: str, observations: list[Observation]) -> None:
    policy = policies.create(name)
    for (decision, _), observation in zip(story(policy, observations), observations, strict=True):
        assert_sound(decision, observation)
