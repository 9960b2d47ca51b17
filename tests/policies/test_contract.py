"""Every registered policy, with its defaults, through the suite that is shipped for policies of others."""

from __future__ import annotations

import pytest

from sluice.protocol import Policy, policies
from sluice.testing.policy_suite import PolicySuite


class TestEveryRegisteredPolicy(PolicySuite):
    @pytest.fixture(params=policies.names())
    def policy(self, request: pytest.FixtureRequest) -> Policy:
        return policies.create(request.param)
