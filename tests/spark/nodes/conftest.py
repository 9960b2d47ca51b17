"""An engine on nodes, without Spark."""

from __future__ import annotations

import pytest

from sluice.spark.internals import executor_calls
from tests.spark.nodes.fakes import World


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(executor_calls, "decommission_executors", lambda *_: [])
    return World(tmp_path)
