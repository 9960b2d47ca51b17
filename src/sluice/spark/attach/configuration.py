"""Settings of `attach` in the Spark configuration, such as `spark.sluice.maxExecutors=8`.

A platform team sets them for all jobs, `sluice submit` for one. What a program hands to `attach` wins.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from sluice.durations import seconds
from sluice.errors import BadInputError, unknown_name
from sluice.protocol import DEFAULT_POLICY
from sluice.spark.attach.objective import Objective
from sluice.spark.attach.settings import SHORTEST_INTERVAL_S, is_address
from sluice.spark.internals import has_ended, is_connect, is_unanswered, root_cause
from sluice.spark.internals.status import session_settings

P = ParamSpec("P")
R = TypeVar("R")

PREFIX = "spark.sluice."
POLICY_PREFIX = f"{PREFIX}policy."


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value.strip()


def _names(value: str) -> list[str]:
    """Separated by semicolons, because settings of a policy have commas between them."""
    return [_text(name) for name in value.split(";")]


def _count(value: str) -> int:
    if not re.fullmatch(r"\s*[1-9]\d*\s*", value):
        raise ValueError("must be a whole number, at least 1")
    return int(value)


def _port(value: str) -> int:
    if not re.fullmatch(r"\s*\d{1,5}\s*", value) or int(value) > 65535:
        raise ValueError("must be a port, 0 to 65535")
    return int(value)


def _switch(value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return value.strip().lower() == "true"


def _duration(value: str) -> float:
    try:
        found = seconds(value, "a duration")
    except BadInputError as error:
        raise ValueError("must be a duration such as 30s, 5m or a number of seconds") from error
    if found < 0:
        raise ValueError("must not be negative")
    return found


def _positive_duration(value: str) -> float:
    found = _duration(value)
    if not found:
        raise ValueError("must be above 0")
    return found


def _interval(value: str) -> float:
    found = _positive_duration(value)
    if found < SHORTEST_INTERVAL_S:
        raise ValueError(f"must be at least {SHORTEST_INTERVAL_S:g} s")
    return found


def _file(value: str) -> str:
    if is_address(value):
        raise ValueError("must be the path of a file on the driver's machine")
    return _text(value)


def _objective(value: str) -> str:
    try:
        Objective.parse(value)
    except BadInputError as error:
        raise ValueError("must look like 'latency<30s'") from error
    return value


@dataclass(frozen=True)
class Setting:
    """One key below `spark.sluice.`: the argument of `attach` it stands for, and how its text is read."""

    argument: str
    parse: Callable[[str], Any]


SETTINGS = {
    "policy": Setting("policy", _text),
    "minExecutors": Setting("min_executors", _count),
    "maxExecutors": Setting("max_executors", _count),
    "initialExecutors": Setting("initial_executors", _count),
    "interval": Setting("interval", _interval),
    "cooldown": Setting("cooldown", _duration),
    "idle": Setting("idle", _positive_duration),
    "fulfilWithin": Setting("fulfil_within", _positive_duration),
    "objective": Setting("objective", _objective),
    "journal": Setting("journal", _file),
    "memory": Setting("memory", _file),
    "metricsPort": Setting("metrics_port", _port),
    "metricsHost": Setting("metrics_host", _text),
    "dashboard": Setting("dashboard", _switch),
    "dashboardPort": Setting("dashboard_port", _port),
    "dashboardHost": Setting("dashboard_host", _text),
    "dashboardToken": Setting("dashboard_token", _text),
    "dryRun": Setting("dry_run", _switch),
    "shadow": Setting("shadow", _names),
}
ENABLED = "enabled"


@dataclass(frozen=True)
class Configuration:
    """What a Spark configuration says about attaching; `arguments` are those of `attach`."""

    enabled: bool = True
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def merged(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """With what a caller gave, which wins; settings of one policy are not those of another."""
        mine = dict(self.arguments)
        settings, own = mine.pop("policy_settings", {}), given.get("policy_settings")
        if settings and given.get("policy", self._policy) == self._policy and isinstance(own, Mapping | None):
            given = {**given, "policy_settings": {**settings, **(own or {})}}
        return {**mine, **given}

    @property
    def _policy(self) -> str:
        return str(self.arguments.get("policy", DEFAULT_POLICY))


def parse_configuration(configuration: Mapping[str, str]) -> Configuration:
    """From all settings of Spark; those that are not ours are left alone, a misspelt one of ours is refused."""
    enabled, arguments, policy_settings = True, {}, {}
    for key, value in configuration.items():
        if key.startswith(POLICY_PREFIX):
            policy_settings[key.removeprefix(POLICY_PREFIX)] = value
        elif key.startswith(PREFIX):
            name = key.removeprefix(PREFIX)
            if name == ENABLED:
                enabled = _parse(key, value, _switch)
            elif name in SETTINGS:
                arguments[SETTINGS[name].argument] = _parse(key, value, SETTINGS[name].parse)
            else:
                known = (f"{PREFIX}{one}" for one in (ENABLED, *SETTINGS, "policy.PARAMETER"))
                raise unknown_name("setting", key, known)
    if policy_settings:
        arguments["policy_settings"] = policy_settings
    fewest, most = arguments.get("min_executors", 1), arguments.get("max_executors")
    if most is not None and fewest > most:
        raise BadInputError(f"{PREFIX}maxExecutors must be at least {PREFIX}minExecutors ({fewest}), got {most}")
    return Configuration(enabled=enabled, arguments=arguments)


def read_configuration(spark: Any) -> Configuration:
    """Of a session, its application's included; empty for what is no session that runs here, which `attach` refuses."""
    if is_connect(spark) or has_ended(spark):
        return Configuration()
    try:
        return parse_configuration(session_settings(spark))
    except Exception as error:
        if not is_unanswered(error):
            raise
        raise BadInputError(
            f"attach needs a running session; its driver does not answer: {root_cause(error)}"
        ) from error


def reads_configuration(attach: Callable[P, R]) -> Callable[P, R]:
    """What a caller of `attach` leaves out is read from the configuration of the session, its first argument."""
    signature = inspect.signature(attach)

    @functools.wraps(attach)
    def attach_configured(*args: P.args, **kwargs: P.kwargs) -> R:
        given = dict(signature.bind(*args, **kwargs).arguments)
        spark = given.pop(next(iter(signature.parameters)))
        call: Callable[..., R] = attach
        return call(spark, **read_configuration(spark).merged(given))

    return attach_configured


def _parse(key: str, value: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise BadInputError(f"{key} {error}, got {value!r}") from error
