"""What every policy must do, whoever wrote it.

In a test module, inherit `PolicySuite` and override its fixture with a policy built with its defaults:

    class TestBand(PolicySuite):
        @pytest.fixture
        def policy(self):
            return Band()
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from sluice.model import Observation, Recommendation
from sluice.protocol import EMPTY_MEMORY, Memory, Policy
from sluice.testing.observations import random_runs, steady_run, unmeasured


class PolicySuite:
    """Parameters, determinism, memory, missing metrics: all that the loop and the command line rely on."""

    @pytest.fixture
    def policy(self) -> Policy:
        raise NotImplementedError("override the fixture `policy` with the policy to check")

    def test_parameters_are_frozen_documented_and_plain(self, policy: Policy) -> None:
        name = type(policy).__name__
        assert (type(policy).__doc__ or "").strip(), f"{name} has no docstring"
        fields = [field for field in dataclasses.fields(policy) if field.init]  # type: ignore[arg-type]
        for field in fields:
            assert field.metadata.get("doc"), f"{name}: parameter {field.name} has no description"
            json.dumps(field.default, allow_nan=False)
        if fields:
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(policy, fields[0].name, None)

    def test_same_input_same_output(self, policy: Policy) -> None:
        assert decide_all(policy, steady_run()) == decide_all(copy.deepcopy(policy), steady_run())

    def test_what_is_given_in_is_never_changed(self, policy: Policy) -> None:
        memory: Memory = EMPTY_MEMORY
        for observation in steady_run():
            observed_before, memory_before = observation.to_json(), copy.deepcopy(memory)
            _, new_memory = policy.decide(observation, memory)
            assert observation.to_json() == observed_before
            assert memory == memory_before
            memory = new_memory

    def test_recommendations_are_sound_on_a_measured_job(self, policy: Policy) -> None:
        check_recommendations(policy, steady_run())

    def test_memory_survives_a_round_trip_through_json(self, policy: Policy) -> None:
        carried: Memory = EMPTY_MEMORY
        for observation, (recommendation, memory) in zip(steady_run(), decide_all(policy, steady_run()), strict=True):
            kept, carried = policy.decide(observation, carried)
            assert kept == recommendation
            assert json.loads(json.dumps(carried)) == json.loads(json.dumps(memory))

    def test_holds_while_nothing_is_known(self, policy: Policy) -> None:
        for recommendation, observation in check_recommendations(policy, unmeasured()):
            present = observation.parallelism
            changed = {name: n for name, n in recommendation.parallelism.items() if n != present[name]}
            assert not changed, f"recommends {changed} with nothing measured: {recommendation.reason}"

    def test_operators_may_come_and_go(self, policy: Policy) -> None:
        """As the queries of an application do: what is remembered of one that left must not break a later window."""
        runs = steady_run()
        names = list(runs[0].operators)
        shown = [names, names[:1], names[1:], names]
        check_recommendations(
            policy,
            [
                seen.model_copy(
                    update={
                        "operators": {name: seen.operators[name] for name in shown[number % len(shown)]},
                        "edges": seen.edges if shown[number % len(shown)] == names else (),
                    }
                )
                for number, seen in enumerate(runs)
            ],
        )

    # one policy serves all examples, and one test function several classes: both are safe, policies being frozen
    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    @given(observations=random_runs())
    def test_no_job_and_no_missing_metric_breaks_it(self, policy: Policy, observations: list[Observation]) -> None:
        check_recommendations(policy, observations)


def decide_all(policy: Policy, observations: Sequence[Observation]) -> list[tuple[Recommendation, Memory]]:
    """One after the other, memory carried over as JSON, as it is when the controller restarts."""
    memory: Memory = EMPTY_MEMORY
    made = []
    for observation in observations:
        recommendation, memory = policy.decide(observation, memory)
        made.append((recommendation, memory))
        memory = json.loads(json.dumps(memory, allow_nan=False))
    return made


def check_recommendations(
    policy: Policy, observations: Sequence[Observation]
) -> list[tuple[Recommendation, Observation]]:
    """Known operators, possible numbers, a reason of one line with a number in it, and JSON both ways."""
    checked = []
    for (recommendation, _), observation in zip(decide_all(policy, observations), observations, strict=True):
        assert recommendation.parallelism.keys() <= observation.operators.keys()
        assert all(isinstance(n, int) and 1 <= n <= 10**9 for n in recommendation.parallelism.values())
        assert recommendation.sizes.keys() <= observation.operators.keys()
        assert re.search(r"\d", recommendation.reason), f"no number in the reason: {recommendation.reason!r}"
        assert "\n" not in recommendation.reason
        assert Recommendation.model_validate_json(recommendation.to_json()) == recommendation
        checked.append((recommendation, observation))
    return checked
