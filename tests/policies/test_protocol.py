from __future__ import annotations

from sluice.model import Observation, Recommendation
from sluice.policies.hpa_cpu import HpaCpu
from sluice.policies.static import Static
from sluice.protocol import Memory, decides_during_cooldown, recommends_sizes


class Sized:
    recommends_sizes = True

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        return Recommendation.hold("0 changes"), memory


def test_a_policy_recommends_no_sizes_unless_it_says_so():
    assert recommends_sizes(Sized())
    assert not recommends_sizes(Static())


def test_a_policy_decides_during_a_cooldown_unless_it_says_otherwise():
    assert decides_during_cooldown(Static())
    assert not decides_during_cooldown(HpaCpu())
