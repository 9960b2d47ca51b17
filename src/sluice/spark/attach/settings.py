"""The arguments of `attach`, checked before anything is started: an error names the argument and what is allowed."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

from sluice.errors import BadInputError
from sluice.protocol import Policy, create_aiming, policies, recommends_sizes

MOST_OF_SPARK = 2**31 - 1
"""Its numbers of executors and ports have 32 bits."""
SHORTEST_INTERVAL_S = 0.1
"""Between decisions: each asks Spark a dozen times, and a batch takes longer anyway."""
_URL = re.compile(r"[A-Za-z][\w+.-]+:/")


@dataclass(frozen=True, kw_only=True)
class AttachSettings:
    """Bounds and times of an attachment."""

    min_executors: int = 1
    max_executors: int = 4
    initial_executors: int | None = None
    interval_s: float = 10.0
    cooldown_s: float = 30.0
    idle_s: float = 60.0
    fulfil_within_s: float = 120.0

    def __post_init__(self) -> None:
        if self.min_executors < 1:
            raise BadInputError(
                f"min_executors must be at least 1 (without executors there are no batches and so no metrics), "
                f"got {self.min_executors}"
            )
        if self.max_executors < self.min_executors:
            raise BadInputError(
                f"max_executors must be at least min_executors ({self.min_executors}), got {self.max_executors}"
            )
        first = self.initial_executors
        if first is not None and not self.min_executors <= first <= self.max_executors:
            raise BadInputError(
                f"initial_executors must be from min_executors ({self.min_executors}) to max_executors "
                f"({self.max_executors}), got {first}"
            )
        for name in ("interval", "idle", "fulfil_within"):
            if not getattr(self, f"{name}_s") > 0:
                raise BadInputError(f"{name} must be above 0, got {getattr(self, f'{name}_s'):g}")
        if self.interval_s < SHORTEST_INTERVAL_S:
            raise BadInputError(f"interval must be at least {SHORTEST_INTERVAL_S:g} s, got {self.interval_s:g}")
        if self.cooldown_s < 0:
            raise BadInputError(f"cooldown must not be negative, got {self.cooldown_s:g}")

    def first_executors(self, present: int, *, working: bool) -> int:
        """How many to begin with: as asked, else those a running job has, else the fewest."""
        if self.initial_executors is not None:
            return self.initial_executors
        return min(max(present, self.min_executors), self.max_executors) if working else self.min_executors


def whole_number(value: object, name: str) -> int:
    """Any integer, numpy's too, as far as Spark can count."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise BadInputError(f"{name} must be a whole number, got {value!r}")
    number = operator.index(value)
    if abs(number) > MOST_OF_SPARK:
        raise BadInputError(f"{name} must be at most {MOST_OF_SPARK}, got {number}")
    return number


def path_of(value: object, name: str) -> Path | None:
    """A file of the driver's machine, there or not yet: neither a folder nor a device, and nothing of HDFS or S3."""
    if value is None:
        return None
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise BadInputError(f"{name} must be the path of a file, got {value!r}")
    if isinstance(value, str) and is_address(value):
        raise BadInputError(f"{name} must be the path of a file on the driver's machine, got the address {value!r}")
    try:
        path = Path(value).expanduser()
        if path.exists() and not path.is_file():
            what = "folder" if path.is_dir() else "device"
            raise BadInputError(f"{name} must be the path of a file, got the {what} {str(path)!r}")
    except (OSError, RuntimeError) as error:
        raise BadInputError(f"{name} must be the path of a file, got {str(value)[:100]!r}: {error.args[-1]}") from error
    return path


def is_address(text: str) -> bool:
    """Whether it names something elsewhere, such as `hdfs://name/file`."""
    return _URL.match(text.strip()) is not None


def different_files(paths: Mapping[str, Path | None]) -> None:
    """Refuse one file for two purposes: each would overwrite the other's."""
    taken: dict[Path, str] = {}
    for name, path in paths.items():
        if path is not None and (other := taken.setdefault(path.resolve(), name)) != name:
            raise BadInputError(f"{name} must be another file than {other}, got {str(path)!r} for both")


def port_of(value: object, name: str) -> int | None:
    if value is None:
        return None
    port = whole_number(value, name)
    if not 0 <= port <= 65_535:
        raise BadInputError(f"{name} must be from 0 (any that is free) to 65535, got {port}")
    return port


def policy_of(
    policy: object, settings: Mapping[str, Any] | None, objective_s: float | None = None
) -> tuple[str, Policy]:
    """The policy and its name; one that aims at a latency gets the objective."""
    if settings is not None and not isinstance(settings, Mapping):
        raise BadInputError(f"policy_settings must be a dictionary, got {settings!r}")
    if isinstance(policy, str):
        name, chosen = policy, create_aiming(policy, settings, objective_s)
    else:
        if isinstance(policy, type) or not callable(getattr(policy, "decide", None)):
            raise BadInputError(
                f"policy must be a name (see 'sluice policies') or an object with decide(observation, memory), "
                f"got {policy!r}"
            )
        if settings:
            raise BadInputError(f"policy_settings go with the name of a policy, got {settings!r} with {policy!r}")
        chosen = policy  # type: ignore[assignment]
        name = policies.name_of(chosen)
    if recommends_sizes(chosen):
        raise BadInputError("attach cannot apply instance sizes: executors of an application are all of one size")
    return name, chosen
