"""Who logs in to a broker leaves the password nowhere but in the file that holds it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.spark.kafka.broker import Login
from sluice.testing.kafka import make_topic, read_values, write_values

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline_kafka.py"


def processes_with(secret: str) -> list[str]:
    """Command lines and environments of all processes that show it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                shown = (process / name).read_bytes()
            except OSError:
                continue
            if secret.encode() in shown:
                found.append(f"{process / name}: {shown[:200]!r}")
    return found


def test_a_password_is_in_no_process_list_log_journal_or_report(kafka: str, kafka_login: Login, tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text(
        f"security.protocol=SASL_SSL\nssl.ca.location={kafka_login.pem.with_name('certificate.pem')}\n"
        f"sasl.mechanisms=PLAIN\nsasl.username={kafka_login.user}\nsasl.password={kafka_login.password}\n"
    )
    settings.chmod(0o600)
    for topic in ("orders-secured", "large-orders-secured"):
        make_topic(kafka, topic, 2)
    write_values(kafka, "orders-secured", [json.dumps({"id": n, "amount": 2.0 * n}).encode() for n in range(100)])
    pipeline = tmp_path / "secured.py"
    text = EXAMPLE.read_text().replace('"orders"', '"orders-secured"').replace("large-orders", "large-orders-secured")
    pipeline.write_text(text.replace('Pipeline("orders-secured")', 'Pipeline("orders")'))
    url = f"kafka://127.0.0.1:{kafka_login.port}?config={settings}"
    words = ["run", str(pipeline), "--engine", "spark", "--topics", url, "--policy", "static", "--duration", "9"]
    words += [
        "--interval",
        "3",
        "--spark-set",
        "slots=2",
        "--root",
        str(tmp_path / "root"),
        "--out",
        str(tmp_path / "out"),
    ]
    with open(tmp_path / "log.txt", "w+") as log:
        running = subprocess.Popen([str(Path(sys.executable).with_name("sluice")), *words], stdout=log, stderr=log)
        shown: list[str] = []
        while running.poll() is None:
            shown += processes_with(kafka_login.password)
            try:
                running.wait(0.5)
            except subprocess.TimeoutExpired:
                continue
    assert running.returncode == 0, (tmp_path / "log.txt").read_text()[-3000:]
    assert len(read_values(kafka, "large-orders-secured")) == 49
    assert shown == []
    holders = [
        Path(folder) / name
        for folder, _, names in os.walk(tmp_path)
        for name in names
        if kafka_login.password.encode() in (Path(folder) / name).read_bytes()
    ]
    assert holders == [settings]
