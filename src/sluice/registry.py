"""Things found by name: one decorated class per file, discovered by importing its package.

Parameters are the fields of a frozen dataclass, so a listing and the command line need no second description.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import typing
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from sluice.errors import BadInputError, unknown_name

T = TypeVar("T")

PARSING = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False)


def parameter(default: Any, doc: str) -> Any:
    """A dataclass field with a sentence that `--help` and the listings show; the unit belongs into its name."""
    return dataclasses.field(default=default, metadata={"doc": doc})


def build(cls: type[T], settings: Mapping[str, Any], what: str) -> T:
    """A dataclass from settings that may be strings, as the command line has them; errors quote value and choice."""
    fields = {field.name for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in fields:
            raise BadInputError(f"{what} has no parameter {key!r}; it has: {', '.join(sorted(fields)) or 'none'}")
        try:
            values[key] = TypeAdapter(hints[key], config=PARSING).validate_python(_none_or(value))
        except ValidationError as error:
            raise BadInputError(f"{what}: {key}: {error.errors()[0]['msg']}, got {value!r}") from error
    try:
        return cls(**values)
    except BadInputError:
        raise
    except ValueError as error:
        raise BadInputError(f"{what}: {error}") from error


def _none_or(value: Any) -> Any:
    return None if value in ("none", "null") else value


class Registry(Generic[T]):
    """Name -> dataclass, for one kind of thing living in one package."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._classes: dict[str, type[T]] = {}
        self._discovered = False

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        def add(cls: type[T]) -> type[T]:
            if self._classes.get(name, cls) is not cls:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._classes[name] = cls
            return cls

        return add

    def names(self) -> tuple[str, ...]:
        self._discover()
        return tuple(sorted(self._classes))

    def get(self, name: str) -> type[T]:
        self._discover()
        if name not in self._classes:
            raise unknown_name(self.kind, name, self._classes)
        return self._classes[name]

    def create(self, name: str, settings: Mapping[str, Any] | None = None) -> T:
        """Build one; settings may be strings, as the command line has them."""
        return build(self.get(name), settings or {}, f"{self.kind} {name!r}")

    def name_of(self, entry: T) -> str:
        """The name an object's class is registered by, or that of the class."""
        names = [name for name, cls in self._classes.items() if cls is type(entry)]
        return names[0] if names else type(entry).__name__

    def describe(self) -> list[dict[str, Any]]:
        """Every entry with its first docstring line and its parameters, for `--json` and for people."""
        return [self._describe_one(name, self.get(name)) for name in self.names()]

    def _describe_one(self, name: str, cls: type[T]) -> dict[str, Any]:
        return {
            "name": name,
            "summary": (cls.__doc__ or "").strip().splitlines()[0],
            "parameters": {
                field.name: {"default": field.default, "doc": field.metadata.get("doc", "")}
                for field in dataclasses.fields(cls)  # type: ignore[arg-type]
                if field.init
            },
        }

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(self._package)
        for module in pkgutil.walk_packages(package.__path__, f"{self._package}."):
            importlib.import_module(module.name)
