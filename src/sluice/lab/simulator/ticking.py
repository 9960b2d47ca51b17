"""How ticks are run: interpreted while they are few, compiled when they are many.

Importing numba and loading compiled code takes longer than interpreting a run of some hours. A run known to be longer
is compiled from its first tick. Both ways run the same functions on the same integers and floats, so where a process
changes from one to the other leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from sluice.lab.simulator.kernel import HELPERS, advance
from sluice.lab.simulator.state import Floats, Ints, Shape, SimulatorState, Window

INTERPRETED_STEPS = 100_000
"""Steps (ticks x operators) that a process interprets; about what loading numba takes."""


class Ticker:
    """Advances one simulation. The arrays it is given stay the truth between calls."""

    steps_left = INTERPRETED_STEPS

    def __init__(self, tick_s: float, shape: Shape, state: SimulatorState, window: Window) -> None:
        self._tick_s = tick_s
        self._shape = shape
        self._state = state
        self._window = window
        self._listed_shape = _lists(shape)
        self._arrived: Ints | None = None
        self._listed_arrived: Any = None

    def expect(self, ticks: int) -> None:
        """So many are to come, as far as that is known beforehand."""
        if ticks * len(self._shape.order) > Ticker.steps_left:
            Ticker.steps_left = 0

    def advance(self, first_tick: int, arrived: Ints, noise: Floats, latency_s: Floats) -> None:
        """See `kernel.advance`."""
        shares_workers = len(self._state.tasks) > 0
        if shares_workers or noise.size > Ticker.steps_left:
            Ticker.steps_left = 0
            self.compiled(first_tick, arrived, noise, latency_s)
        else:
            Ticker.steps_left -= noise.size
            self.interpreted(first_tick, arrived, noise, latency_s)

    def compiled(self, first_tick: int, arrived: Ints, noise: Floats, latency_s: Floats) -> None:
        run = compiled_advance()
        run(first_tick, self._tick_s, self._shape, self._state, self._window, arrived, noise, latency_s)

    def interpreted(self, first_tick: int, arrived: Ints, noise: Floats, latency_s: Floats) -> None:
        if arrived is not self._arrived:
            self._arrived, self._listed_arrived = arrived, arrived.tolist()
        state, window, waiting = _lists(self._state), _lists(self._window), latency_s.tolist()
        shape, topics = self._listed_shape, self._listed_arrived
        advance(first_tick, self._tick_s, shape, state, window, topics, noise.tolist(), waiting)
        latency_s[:] = waiting
        for arrays, lists in ((self._state, state), (self._window, window)):
            for array, values in zip(arrays, lists, strict=True):
                if array.size:
                    array[:] = values


@cache
def compiled_advance() -> Callable[..., None]:
    from numba import njit
    from numba.extending import register_jitable

    for helper in HELPERS:
        register_jitable(helper)
    return njit(cache=True)(advance)  # type: ignore[no-any-return]


def _lists(arrays: Any) -> Any:
    """The same named tuple with lists in place of arrays: plain numbers are several times faster to interpret."""
    return arrays._make(value if isinstance(value, int) else value.tolist() for value in arrays)
