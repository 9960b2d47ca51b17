"""Functions that numba compiles when the first of them is called; importing them needs no numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sluice.errors import needs_extra

Function = TypeVar("Function", bound=Callable[..., Any])


class Compiler:
    """A decorator. Machine code is kept on disk, so a second process loads it instead of compiling.

    Compiled functions find each other by their names in their modules; until the first call these names hold
    placeholders, which are then replaced everywhere at once.
    """

    def __init__(self, what: str, extra: str) -> None:
        self._what = what
        self._extra = extra
        self._waiting: dict[Callable[..., Any], Callable[..., Any]] = {}

    def __call__(self, function: Function) -> Function:
        @wraps(function)
        def placeholder(*arguments: Any) -> Any:
            self._compile()
            return function.__globals__[function.__name__](*arguments)

        self._waiting[placeholder] = function
        return cast(Function, placeholder)

    def _compile(self) -> None:
        if not self._waiting:
            return
        with needs_extra(self._what, self._extra):
            from numba import njit
        compiled = {id(placeholder): njit(cache=True)(function) for placeholder, function in self._waiting.items()}
        modules = {id(function.__globals__): function.__globals__ for function in self._waiting.values()}
        for names in modules.values():
            names.update({name: compiled[id(value)] for name, value in names.items() if id(value) in compiled})
        self._waiting.clear()
