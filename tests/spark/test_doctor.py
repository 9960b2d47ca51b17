"""The doctor's verdicts, and the one line a missing Java comes to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.errors import BadInputError
from sluice.spark.doctor import check_disk, diagnose, judge_amount, judge_java
from sluice.spark.session import java_home_problem, open_session


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "ok"),
        ('openjdk version "21" 2023-09-19', "ok"),
        ('java version "19.0.1" 2022-10-18', "warning"),
        ('openjdk version "11.0.20" 2023-07-18', "problem"),
        ('java version "1.8.0_391"', "problem"),
        ("command not understood", "problem"),
        ("", "problem"),
    ],
)
def test_java_is_judged_by_its_version(said, verdict):
    finding = judge_java(said)
    assert finding.verdict == verdict
    assert bool(finding.advice) == (verdict != "ok")


@pytest.mark.parametrize(("free_mb", "verdict"), [(400, "problem"), (1000, "warning"), (9000, "ok")])
def test_amounts_are_judged_against_what_is_needed_and_what_is_good(free_mb, verdict):
    assert judge_amount("disk", free_mb, 500, 5000, "free some").verdict == verdict


def test_a_folder_that_cannot_be_written_to_is_a_problem(monkeypatch, tmp_path):
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    finding = check_disk(tmp_path)
    assert (finding.verdict, "Permission denied" in finding.found) == ("problem", True)


def test_every_check_reports_even_if_one_breaks(monkeypatch, tmp_path):
    def broken() -> None:
        raise RuntimeError("no idea")

    monkeypatch.setattr("sluice.spark.doctor.check_memory", broken)
    findings = {finding.check: finding for finding in diagnose(tmp_path)}
    assert set(findings) == {"Java", "Python", "packages", "memory", "cores", "ports", "disk"}
    assert findings["memory"].verdict == "warning"


def test_without_java_starting_is_bad_input_in_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(BadInputError, match="Java is missing: Spark needs Java 17 or 21"):
        open_session("test", threads=1)
    monkeypatch.setenv("JAVA_HOME", "/nowhere/java")
    assert java_home_problem() == (
        "JAVA_HOME is '/nowhere/java', but there is no bin/java in it; point it to a Java 17 or 21"
    )


def test_the_command_prints_json_and_fails_where_spark_could_not_run():
    sluice = [str(Path(sys.executable).with_name("sluice")), "doctor", "--json"]
    environment = {**os.environ, "JAVA_HOME": "/nowhere"}
    done = subprocess.run(sluice, capture_output=True, text=True, env=environment, check=False)
    verdicts = {finding["check"]: finding["verdict"] for finding in json.loads(done.stdout)}
    assert verdicts["Java"] == "problem"
    assert verdicts["Python"] == "ok"
    assert done.returncode == 1
    assert "JAVA_HOME is '/nowhere'" in done.stderr
