"""What a pool of nodes may rely on, whatever the provider.

In a test module, inherit `NodeSuite` and override its fixture with a provider that has started nothing yet. One that
needs a while until `list` knows what happened has a `patience_s`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

import pytest

from sluice.errors import SluiceError
from sluice.spark.nodes.provider import NodeProvider


class NodeSuite:
    """`type_name` can be started twice; there is no type `absent`."""

    type_name: ClassVar[str] = "small"
    absent: ClassVar[str] = "no-such-type"
    patience_s: ClassVar[float] = 10.0

    @pytest.fixture
    def provider(self) -> NodeProvider:
        raise NotImplementedError("override the fixture `provider` with the provider to check")

    def test_its_types_have_different_names_and_stay_the_same(self, provider: NodeProvider) -> None:
        names = [one.name for one in provider.types()]
        assert self.type_name in names
        assert len(set(names)) == len(names)
        assert list(provider.types()) == list(provider.types())

    def test_nothing_runs_that_was_not_started(self, provider: NodeProvider) -> None:
        assert list(provider.list()) == []

    def test_nodes_are_started_listed_and_stopped_one_by_one(self, provider: NodeProvider) -> None:
        first, second = provider.start(self.type_name, 2)
        assert (first.type, second.type) == (self.type_name, self.type_name)
        assert first.name != second.name
        assert first.host != second.host
        self._until(lambda: {one.name for one in provider.list()} == {first.name, second.name})
        provider.stop(first)
        self._until(lambda: [one.name for one in provider.list()] == [second.name])
        provider.stop(second)
        self._until(lambda: not provider.list())

    def test_stopping_what_is_gone_is_no_error(self, provider: NodeProvider) -> None:
        (node,) = provider.start(self.type_name, 1)
        provider.stop(node)
        provider.stop(node)

    def test_a_type_that_does_not_exist_is_refused_in_one_line(self, provider: NodeProvider) -> None:
        with pytest.raises(SluiceError) as refused:
            provider.start(self.absent, 1)
        assert self.absent in str(refused.value)
        assert "\n" not in str(refused.value)
        assert list(provider.list()) == []

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + self.patience_s
        while not condition():
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
