"""A real YARN: what is written for it, and `attach` on it while a node is lost."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sluice.cli import main
from sluice.errors import BadInputError, SluiceError
from sluice.spark.cluster import jars, yarn, yarn_conf
from sluice.spark.cluster.lifecycle import read_state
from sluice.spark.cluster.plan import ClusterPlan, ClusterSize
from tests.spark.clusters import check_result, run_cli, run_step_load

QUICK_TO_NOTICE = "--conf spark.shuffle.io.retryWait=1s"
"""Reading from an executor that is gone is tried again three times, five seconds apart otherwise."""
PATIENCE_S = 120.0
SIZE = ClusterSize(workers=2, slots=3, memory_mb=1024)


@pytest.fixture(scope="module")
def hadoop() -> Path:
    try:
        return jars.HADOOP.get()
    except SluiceError as error:
        pytest.skip(str(error))


def settings_in(file: Path) -> dict[str, str]:
    return {entry.findtext("name", ""): entry.findtext("value", "") for entry in ElementTree.parse(file).getroot()}


def test_nodes_differ_in_folders_and_leave_their_ports_to_the_kernel(tmp_path: Path) -> None:
    plan = yarn.make_plan(tmp_path, SIZE, tmp_path / "jars")
    assert list(plan.daemons) == ["resourcemanager", "nodemanager-0", "nodemanager-1"]
    first, second = (settings_in(tmp_path / "conf" / f"nodemanager-{n}" / "yarn-site.xml") for n in range(2))
    differ = {name for name in first if first[name] != second[name]}
    assert differ == {"yarn.nodemanager.local-dirs", "yarn.nodemanager.log-dirs"}
    assert first["yarn.nodemanager.address"] == "127.0.0.1:0"
    assert first["yarn.nodemanager.resource.cpu-vcores"] == "3"
    assert first["yarn.nodemanager.resource.memory-mb"] == str(3 * (1024 + 384))
    assert all(plan.mark in " ".join(daemon.command) for daemon in plan.daemons.values())
    assert ClusterPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(("memory_mb", "container_mb"), [(512, 896), (1024, 1408), (1000, 1408), (10_240, 11_264)])
def test_a_container_has_room_for_what_spark_adds(memory_mb: int, container_mb: int) -> None:
    assert yarn_conf.container_mb(memory_mb) == container_mb


def test_a_job_finds_its_settings_in_the_folder_of_the_configuration(tmp_path: Path) -> None:
    plan = yarn.make_plan(tmp_path, SIZE, tmp_path / "jars")
    assert plan.conf_dir is not None
    lines = (Path(plan.conf_dir) / "spark-defaults.conf").read_text().splitlines()
    assert dict(line.split(" ", 1) for line in lines) == plan.settings
    assert settings_in(Path(plan.conf_dir) / "yarn-site.xml")["yarn.resourcemanager.webapp.address"] in plan.web_url


def test_values_are_escaped() -> None:
    assert "<value>a&lt;b &amp; c</value>" in yarn_conf.to_xml({"name": "a<b & c"})


def test_one_slot_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="at least 2 slots, got 1: the application master"):
        yarn.up(tmp_path, workers=1, slots=1)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path / "cache"


def write_maven(folder: Path, script: str) -> None:
    program = folder / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_without_maven_one_line_says_what_is_missing(empty_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["cluster", "up", "--yarn", "--home", str(empty_cache / "home")])
    said = capsys.readouterr().err.splitlines()[-1]
    assert str(empty_cache / f"hadoop-{jars.HADOOP_VERSION}") in said
    assert "install Maven (mvn)" in said


def test_maven_that_fails_is_quoted_and_leaves_nothing(empty_cache: Path) -> None:
    write_maven(empty_cache.parent / "bin", "echo '[ERROR] Unknown host'; echo '[ERROR] See the log'; exit 1")
    with pytest.raises(SluiceError, match=r"did not get the jars of Hadoop [\d.]+: Unknown host$"):
        jars.HADOOP.get()
    assert list(empty_cache.iterdir()) == []


def test_jars_are_resolved_once(empty_cache: Path) -> None:
    copies = 'for last; do :; done; to="${last#-DoutputDirectory=}"; /bin/mkdir "$to"; echo > "$to/hadoop-common.jar"'
    write_maven(empty_cache.parent / "bin", copies)
    assert [jar.name for jar in jars.HADOOP.get().iterdir()] == ["hadoop-common.jar"]
    write_maven(empty_cache.parent / "bin", "exit 1")
    assert jars.HADOOP.get() == empty_cache / f"hadoop-{jars.HADOOP_VERSION}"


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {PATIENCE_S:g} s"
        time.sleep(0.5)


@pytest.mark.spark
@pytest.mark.yarn
@pytest.mark.slow
def test_attach_on_yarn_follows_the_load_and_survives_the_loss_of_a_node(
    java: None, hadoop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, root = tmp_path / "yarn", tmp_path / "job"
    at_home = ["--home", str(home)]
    try:
        # beside the application's master a node has room for one executor, so another node has one to lose
        cluster = run_cli(["up", "--yarn", "--workers", "3", "--slots", "2", *at_home], capsys)
        assert (cluster["master_url"], cluster["workers"]) == ("yarn", 3)
        assert cluster["usage"].startswith(f"HADOOP_CONF_DIR={cluster['conf_dir']} ")
        run_step_load(root, home, ["executors=2", "node"], QUICK_TO_NOTICE)
        # a node counts as lost when it has been silent for a while
        wait_until(lambda: run_cli(["status", *at_home], capsys)["alive_workers"] == 2)
    finally:
        assert run_cli(["down", *at_home], capsys) == {"ended": True}
    check_result(root, cluster["mark"])


@pytest.mark.spark
@pytest.mark.yarn
@pytest.mark.slow
def test_a_yarn_that_does_not_start_says_why(
    java: None, hadoop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(yarn, "free_port", lambda: taken.getsockname()[1])
        with pytest.raises(SluiceError, match=r"did not start: resourcemanager: .*already in use; the logs are in"):
            yarn.up(tmp_path, workers=1, slots=2)
    assert read_state(tmp_path) is None
