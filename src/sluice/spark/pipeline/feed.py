"""What the engine needs from whoever fills the topics of a pipeline's sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Feed(Protocol):
    """Calls come from one thread: `start` when the topics exist, `check` now and then, `stop` once at the end."""

    def start(self, topics: Mapping[str, str]) -> None:
        """Begin with time 0 of the workload, or go on where an earlier run in these topics ended.

        `topics` are locators, for `open_log`.
        """
        ...

    def check(self) -> None:
        """Raise SluiceError if nothing will arrive any more: such a run would look like a quiet one."""
        ...

    def stop(self) -> object: ...
