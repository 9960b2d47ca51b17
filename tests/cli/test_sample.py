"""`sluice sample`: what it refuses before anything starts."""

from __future__ import annotations

import json
import re

import pytest

from sluice.cli import main
from sluice.lab.spark_nodes import NodeSetup

pytest.importorskip("sklearn")

ON_NODES = ["q1", "--master", "spark://h:1", "--nodes", "example"]
SAMPLE = {"size": {"name": "micro", "cpu_cores": 1, "memory_mb": 2048}, "rate": 10}


@pytest.fixture(autouse=True)
def no_nodes(monkeypatch):
    """Whatever gets so far as to start a node has refused nothing."""
    monkeypatch.setattr(NodeSetup, "pool", lambda *_: pytest.fail("a node was started"))


def refusal(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["sample", *arguments])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["q1", "--master", "spark://h:1"], "--nodes is missing: the sizes to sample"),
        ([*ON_NODES, "--sampler", "all"], "unknown sampler 'all'; known: dsa, fssa"),
        ([*ON_NODES, "--node-type", "huge"], "unknown node type 'huge'"),
        ([*ON_NODES, "--node-start", "start {type}"], "--node-start and --node-stop go together"),
        ([*ON_NODES, "--tolerance", "2"], "tolerance must be in (0, 1), got 2.0"),
        ([*ON_NODES, "--windows", "9", "--max-windows", "10"], "max_windows must be at least twice windows, got 10"),
        ([*ON_NODES, "--workload", "nothing"], "unknown workload 'nothing'"),
        ([*ON_NODES, "--pipeline-set", "colour=red"], "colour"),
        ([*ON_NODES, "--spark-set", "trigger_s=0"], "trigger_s must be above 0, got 0.0"),
        (["q1", "--master", "local[2]", "--nodes", "example"], "spark://HOST:PORT, or on yarn, got 'local[2]'"),
        (["nothing.py:p", "--master", "spark://h:1", "--nodes", "example"], "no file 'nothing.py'"),
        (
            ["q1", "--master", "spark://h:1", "--nodes", "no.json"],
            "neither built in (example, one-size) nor a readable",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, complaint, capsys):
    assert complaint in refusal(capsys, *arguments)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"q1": [', "is no JSON"),
        (json.dumps({"other": [SAMPLE]}), "has operator 'other', this pipeline"),
        (json.dumps({"other": [{"size": "large"}]}), "samples file"),
    ],
)
def test_samples_that_cannot_be_gone_on_with_are_refused(content, complaint, tmp_path, capsys):
    path = tmp_path / "samples.json"
    path.write_text(content)
    assert complaint in refusal(capsys, *ON_NODES, "--out", str(path))


@pytest.mark.parametrize("engine", [[], ["--engine", "spark", *ON_NODES[1:]]])
@pytest.mark.parametrize(
    ("parameter", "content", "complaint"),
    [
        (
            "samples",
            json.dumps({"other": [SAMPLE]}),
            "samples file '.*' is of another pipeline: it has other, this one",
        ),
        ("samples", '{"other": [', "is no JSON"),
        (
            "performance",
            json.dumps({"other": {"micro": 5}}),
            "performance file '.*' is of another pipeline: it has other",
        ),
        ("performance", '{"other": {"micro"', "is no JSON"),
        ("performance", json.dumps({"q1": {"micro": -5}}), "performance file"),
    ],
)
def test_what_another_pipeline_measured_is_no_use_for_a_run(engine, parameter, content, complaint, tmp_path, capsys):
    path = tmp_path / "sizes.json"
    path.write_text(content)
    settings = ["--policy", "qescalor", "--set", f"{parameter}={path}", "--set", "prices=example"]
    with pytest.raises(SystemExit) as ended:
        main(["run", "q1", *engine, *settings])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert re.search(complaint, line)


def test_prices_that_are_not_those_of_the_nodes_are_refused(tmp_path, capsys):
    nodes = [{"name": "micro", "cpu_cores": 1, "memory_mb": 2048, "price_per_hour": 0.5}]
    path = tmp_path / "sizes.json"
    path.write_text(json.dumps(nodes))
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps([{**nodes[0], "cpu_cores": 2}]))
    command = ["run", "q1", "--engine", "spark", "--master", "spark://h:1", "--nodes", str(path)]
    with pytest.raises(SystemExit):
        main([*command, "--policy", "qescalor", "--set", f"prices={prices}"])
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "size 'micro' has 2 cores, 2048 MB and a price of 0.5 in its price table, and others in --nodes" in line
