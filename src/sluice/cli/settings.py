"""`key=value` options, shared by the commands."""

from __future__ import annotations

from collections.abc import Iterable

from sluice.errors import BadInputError


def parse_settings(pairs: Iterable[str], option: str = "--set") -> dict[str, str]:
    """`["target=0.7"]` -> `{"target": "0.7"}`; types come from the dataclass the settings are for."""
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise BadInputError(f"{option} takes key=value, got {pair!r}")
        settings[key.strip()] = value.strip()
    return settings
