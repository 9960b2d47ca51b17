"""Compiled once and kept on disk: the second process that searches starts warm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    return cast(Function, njit(cache=True)(function))
