"""The doctor's verdicts, and the one line a missing Java comes to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.cli.doctor import show
from sluice.errors import BadInputError
from sluice.spark.doctor import (
    SUPPORTED,
    Finding,
    Versions,
    check_disk,
    diagnose,
    judge_amount,
    judge_java,
    judge_packages,
    judge_python,
    judge_spark,
    judge_spark_home,
)
from sluice.spark.session import java_home_problem, open_session
from sluice.testing.spark_versions import VERSIONS


@pytest.mark.parametrize(
    ("said", "spark", "verdict"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "4.3.0", "ok"),
        ('openjdk version "21" 2023-09-19', "4.0.5", "ok"),
        ('openjdk version "21" 2023-09-19', "3.5.9", "warning"),
        ('openjdk version "11.0.20" 2023-07-18', "3.5.9", "ok"),
        ('java version "1.8.0_391"', "3.5.9", "ok"),
        ('java version "1.7.0_80"', "3.5.9", "problem"),
        ('java version "19.0.1" 2022-10-18', None, "warning"),
        ('openjdk version "25" 2025-09-16', "4.1.4", "warning"),
        ('openjdk version "11.0.20" 2023-07-18', "4.0.5", "problem"),
        ('java version "1.8.0_391"', "4.3.0", "problem"),
        ("command not understood", "4.3.0", "problem"),
        ("", None, "problem"),
    ],
)
def test_java_is_judged_by_its_version_and_that_of_spark(said, spark, verdict):
    finding = judge_java(said, spark)
    assert finding.verdict == verdict
    assert bool(finding.advice) == (verdict != "ok")


def test_the_advice_names_what_fits():
    assert judge_java('openjdk version "11.0.20"', "4.0.5").advice == (
        "Spark 4.0 needs Java 17 or 21, on the PATH or in JAVA_HOME"
    )
    assert judge_java('java version "1.7.0_80"', "3.5.9").advice.startswith("Spark 3.5 needs Java 8, 11 or 17")


@pytest.mark.parametrize(
    ("version", "verdict", "advice"),
    [
        (None, "problem", "install sluice[spark]"),
        ("3.4.4", "problem", "sluice works with pyspark 3.5 to 4.3"),
        ("4.4.0", "problem", "sluice works with pyspark 3.5 to 4.3"),
        ("3.5.9", "warning", "attach and submit work; pipelines ('sluice run --engine spark') need pyspark 4.3"),
        ("4.3.0", "ok", ""),
    ],
)
def test_spark_is_judged_by_its_version(version, verdict, advice):
    finding = judge_spark(version)
    assert (finding.verdict, finding.advice) == (verdict, advice)


@pytest.mark.parametrize(
    ("version", "spark", "advice"),
    [
        ((3, 9, 18), "3.5.9", "sluice needs Python 3.10 or newer"),
        ((3, 10, 13), "3.5.9", ""),
        ((3, 10, 13), "4.3.0", "Spark 4.3 needs Python 3.11 or newer"),
        ((3, 11, 7), "4.3.0", ""),
    ],
)
def test_python_is_judged_for_sluice_and_for_spark(version, spark, advice):
    finding = judge_python(version, spark)
    assert (finding.verdict, finding.advice) == ("problem" if advice else "ok", advice)


def test_the_versions_that_are_tried_are_those_that_are_supported():
    assert [version.rpartition(".")[0] for version in VERSIONS] == list(SUPPORTED)


def test_packages_that_attach_does_without_are_no_problem():
    assert judge_packages({"pyarrow": "26.0.1", "pandas": "2.3.3"}).verdict == "ok"
    assert judge_packages({"pyarrow": None, "pandas": None}).found == "pyarrow and pandas missing"
    assert judge_packages({"pyarrow": None, "pandas": "2.3.3"}).verdict == "warning"
    assert judge_packages({"pyarrow": "26.0.1", "pandas": "3.0.0"}).verdict == "problem"


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
    assert set(findings) == {"Spark", "SPARK_HOME", "Java", "Python", "packages", "memory", "cores", "ports", "disk"}
    assert findings["memory"].verdict == "warning"


def test_versions_may_be_given_before_they_are_installed(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    given = Versions(spark="3.5.9", java="21", python="3.9.1")
    findings = {finding.check: finding for finding in diagnose(tmp_path, given)}
    assert (findings["Spark"].found, findings["Spark"].verdict) == ("pyspark 3.5.9", "warning")
    assert findings["Java"].advice == "Spark 3.5 is released for Java 8, 11 or 17"
    assert findings["Python"].advice == "sluice needs Python 3.10 or newer"


@pytest.mark.parametrize("given", [{"spark": "newest"}, {"spark": "4"}, {"java": "17-ea"}, {"python": "3.x"}])
def test_what_is_no_version_is_refused(given):
    (name, value), *_ = given.items()
    with pytest.raises(BadInputError, match=f"--{name} must be a version such as .*, got '{value}'"):
        Versions(**given)


@pytest.mark.parametrize(
    ("jar", "spark", "verdict", "advice"),
    [
        ("spark-core_2.13-4.3.0.jar", "4.3.1", "ok", ""),
        ("spark-core_2.12-3.5.9.jar", "4.3.0", "problem", "pyspark is 4.3.0: install pyspark 3.5, or unset SPARK_HOME"),
        ("spark-core_2.12-3.4.1.jar", "3.5.9", "problem", "sluice works with pyspark 3.5 to 4.3"),
        ("spark-tags_2.13-4.3.0.jar", "4.3.0", "problem", "set it to the folder of a Spark, or unset it"),
    ],
)
def test_the_spark_that_submit_would_run_must_fit(tmp_path, jar, spark, verdict, advice):
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / jar).touch()
    finding = judge_spark_home(str(tmp_path), spark)
    assert (finding.verdict, finding.advice) == (verdict, advice)


def test_without_java_starting_is_bad_input_in_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(BadInputError, match="Java is missing: Spark needs Java 17 or 21"):
        open_session("test", threads=1)
    monkeypatch.setenv("JAVA_HOME", "/nowhere/java")
    assert java_home_problem() == (
        "JAVA_HOME is '/nowhere/java', but there is no bin/java in it; point it to a Java 17 or 21"
    )


def test_pipelines_on_an_older_spark_are_bad_input_in_one_line(monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    with pytest.raises(BadInputError, match=r"pipelines need pyspark 4.3, got 3.5.9; sluice.attach works with it"):
        open_session("test", threads=1)


def test_the_command_prints_json_and_fails_where_spark_could_not_run():
    sluice = [str(Path(sys.executable).with_name("sluice")), "doctor", "--json"]
    environment = {**os.environ, "JAVA_HOME": "/nowhere"}
    done = subprocess.run(sluice, capture_output=True, text=True, env=environment, check=False)
    verdicts = {finding["check"]: finding["verdict"] for finding in json.loads(done.stdout)}
    assert verdicts["Java"] == "problem"
    assert verdicts["Python"] == "ok"
    assert done.returncode == 1
    assert "JAVA_HOME is '/nowhere'" in done.stderr


def test_the_table_shows_the_extra_to_install(capsys):
    show([Finding("Spark", "problem", "pyspark is missing", "install sluice[spark]")])
    assert "sluice[spark]" in capsys.readouterr().out
