"""Things found by name: decorated classes in the modules of one package, imported when they are asked for.

Parameters are the fields of a frozen dataclass, so a listing and the command line need no second description.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from sluice.durations import seconds
from sluice.errors import BadInputError, needs_extra, unknown_name

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
            values[key] = TypeAdapter(hints[key], config=PARSING).validate_python(_read(key, value))
        except ValidationError as error:
            raise BadInputError(f"{what}: {key}: {error.errors()[0]['msg']}, got {value!r}") from error
        except BadInputError as error:
            raise BadInputError(f"{what}: {error}") from error
    try:
        return cls(**values)
    except BadInputError:
        raise
    except ValueError as error:
        raise BadInputError(f"{what}: {error}") from error


def _read(key: str, value: Any) -> Any:
    """Texts as people write them: `none`, and times such as `5m` where the name says that it is one."""
    if value in ("none", "null"):
        return None
    if key.endswith("_s") and isinstance(value, str):
        return seconds(value, key)
    return value


class Registry(Generic[T]):
    """Name -> dataclass, for one kind of thing living in one package, whose packages come with `extra`.

    With `one_per_file` the file hpa_cpu.py holds `hpa-cpu` and nothing else, so listing names needs no import.
    """

    def __init__(self, kind: str, package: str, *, extra: str, one_per_file: bool = False) -> None:
        self.kind = kind
        self._package = package
        self._extra = extra
        self._one_per_file = one_per_file
        self._classes: dict[str, type[T]] = {}
        self._complete = False

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        def add(cls: type[T]) -> type[T]:
            if self._classes.get(name, cls) is not cls:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._classes[name] = cls
            return cls

        return add

    def names(self) -> tuple[str, ...]:
        if self._one_per_file:
            return tuple(sorted({*self._classes, *(_entry(module) for module in self._modules())}))
        self._import_all()
        return tuple(sorted(self._classes))

    def get(self, name: str) -> type[T]:
        if name not in self._classes:
            self._find(name)
        if name not in self._classes:
            raise unknown_name(self.kind, name, self.names())
        return self._classes[name]

    def create(self, name: str, settings: Mapping[str, Any] | None = None) -> T:
        """Build one; settings may be strings, as the command line has them."""
        return build(self.get(name), settings or {}, f"{self.kind} {name!r}")

    def name_of(self, entry: T) -> str:
        """The name an object's class is registered by, or that of the class."""
        names = [name for name, cls in self._classes.items() if cls is type(entry)]
        return names[0] if names else type(entry).__name__

    def describe(self) -> list[dict[str, Any]]:
        """Every entry with its first docstring line and its parameters, for `--json` and for people.

        An entry whose packages are not installed has the name of the extra in place of its summary.
        """
        return [self._describe_one(name) for name in self.names()]

    def _describe_one(self, name: str) -> dict[str, Any]:
        try:
            cls = self.get(name)
        except BadInputError as error:
            return {"name": name, "summary": str(error), "parameters": {}}
        return {
            "name": name,
            "summary": (cls.__doc__ or "").strip().splitlines()[0],
            "parameters": {
                field.name: {"default": field.default, "doc": field.metadata.get("doc", "")}
                for field in dataclasses.fields(cls)  # type: ignore[arg-type]
                if field.init
            },
        }

    def _find(self, name: str) -> None:
        """Import the module named like the entry, or all of them where that one does not have it."""
        for module in self._modules():
            if _entry(module) == name:
                self._import(module)
        if name not in self._classes and not self._one_per_file:
            self._import_all()

    def _import_all(self) -> None:
        if not self._complete:
            self._complete = True
            for module in self._modules():
                self._import(module)

    def _modules(self) -> Iterator[str]:
        package = importlib.import_module(self._package)
        return (module.name for module in pkgutil.walk_packages(package.__path__, f"{self._package}."))

    def _import(self, module: str) -> None:
        with needs_extra(f"{self.kind} {_entry(module)!r}", self._extra):
            importlib.import_module(module)


def _entry(module: str) -> str:
    return module.rpartition(".")[2].replace("_", "-")
