"""What a user can get wrong, said in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec


class SluiceError(Exception):
    """A failure with a message fit to be shown as it is; the command line turns it into exit code 1."""


class BadInputError(SluiceError, ValueError):
    """Something the user gave is not allowed; the message names the value and what is. Exit code 2."""


def unknown_name(kind: str, name: str, allowed: Iterable[str]) -> BadInputError:
    """The same wording for every registry: the name that was given and those that are known."""
    return BadInputError(f"unknown {kind} {name!r}; known: {', '.join(sorted(allowed))}")


def missing_extra(what: str, package: str, extra: str) -> BadInputError:
    return BadInputError(f"{what} needs the package {package}: install sluice[{extra}]")


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Around imports of packages that only this extra installs."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "sluice"):
            raise
        if package != error.name and find_spec(package) is not None:
            raise BadInputError(f"{what} needs {error.name}: the installed {package} is too old for it") from error
        raise missing_extra(what, package, extra) from error
