"""Policies that are asked and put on record, and never acted on."""

from __future__ import annotations

from collections.abc import Iterable

from sluice.errors import BadInputError
from sluice.journal.records import Choice
from sluice.protocol import Policy, create_aiming


def shadow_policies(texts: Iterable[str], objective_s: float | None = None) -> dict[str, Policy]:
    """Label -> policy, from texts such as `ds2` or `ds2:over_provisioning=1.4`; each once."""
    if not isinstance(texts, Iterable):
        raise BadInputError(f"shadow must be the names of policies, got {texts!r}")
    found: dict[str, Policy] = {}
    for text in texts:
        if not isinstance(text, str):
            raise BadInputError(f"a shadow is the name of a policy, got {text!r}")
        choice = Choice.parse_text(text)
        if choice.label in found:
            raise BadInputError(f"shadow {choice.label!r} is named twice")
        found[choice.label] = create_aiming(choice.name, choice.settings, objective_s)
    return found
