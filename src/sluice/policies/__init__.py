"""One file per policy; `base.py` has the protocol and the registry."""

from sluice.policies.base import EMPTY_MEMORY, Memory, Policy, asked_while_cooling, policies, policy

__all__ = ["EMPTY_MEMORY", "Memory", "Policy", "asked_while_cooling", "policies", "policy"]
