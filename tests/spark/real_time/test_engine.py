"""Real-time mode over a real broker, rescaled each way under load, in a program whose session has the jars."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.errors import SluiceError
from sluice.spark.kafka import connector
from sluice.testing import real_time

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module", autouse=True)
def jars() -> None:
    try:
        connector.connector_jars()
    except SluiceError as error:
        pytest.skip(str(error))


def test_nothing_is_lost_or_repeated_by_a_rescale(kafka: str, tmp_path: Path) -> None:
    words = [kafka, str(tmp_path), "count", "1", "100", "real-time"]
    done = subprocess.run(
        [sys.executable, "-m", real_time.__name__, *words], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first = json.loads(done.stdout)
    assert (first["mode"], first["lost"], first["twice"]) == ("real-time", 0, 0)
    assert first["records"] > 0
    assert list(first["gaps_s"]) == ["2 -> 4", "4 -> 1"]
