"""Runs on workers of limited size: the planner places after every decision, and it matters how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluice.cli import main
from sluice.control.guards import Guards
from sluice.journal.file import MemoryJournal, read_runs
from sluice.journal.results import CycleReport
from sluice.lab.pipelines import pipelines
from sluice.lab.placing import PlacementSetup, UniformCluster
from sluice.lab.run import RunSpec, run, simulated_engine
from sluice.lab.summary import summarise
from sluice.lab.workloads import workloads
from sluice.placement import placers
from sluice.protocol import policies

CLUSTER = UniformCluster(workers=12, slots=8, cpu=3.0).cluster()


def throughput_share(strategy: str) -> tuple[float, tuple[CycleReport, ...]]:
    spec = RunSpec(
        pipeline=pipelines.create("inference"),
        policy=policies.create("ds2"),
        workload=workloads.create("constant"),
        guards=Guards(max_slots=CLUSTER.slots, cooldown_s=120.0),
        duration_s=1800.0,
        placing=PlacementSetup(placer=placers.create(strategy), cluster=CLUSTER),
    )
    engine, initial = simulated_engine(spec)
    journal = MemoryJournal()
    run(spec, engine, initial, journal)
    return summarise(journal.reports(), journal.end(), 30.0).throughput_ratio, journal.reports()


def test_the_same_policy_carries_more_with_a_better_placement() -> None:
    caps, reports = throughput_share("caps")
    default, _ = throughput_share("default")
    assert caps > default + 0.03
    acted = [report.cycle for report in reports if report.result.is_action]
    assert acted
    assert all(any(note.startswith("placement:") for note in cycle.notes) for cycle in acted)


def test_the_command_line_places_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "q1", "--duration", "600", "--policy", "ds2", "--json"]
    arguments += ["--placement", "evenly", "--cluster", "slots=16"]
    with pytest.raises(SystemExit) as exited:
        main([*arguments, "--out", str(tmp_path)])
    assert not exited.value.code
    assert json.loads(capsys.readouterr().out)["lost_records"] == 0
    (run,) = read_runs(tmp_path)
    assert any(report.cycle.target.placement for report in run.reports if report.result.is_action)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--cluster", "slots=4"], "--cluster needs a --placement"),
        (["--placement", "nowhere"], "unknown placement strategy 'nowhere'"),
        (["--placement", "caps", "--cluster", "slots=0"], "slots must be above 0, got 0"),
        (["--placement", "caps", "--engine", "spark"], "--placement on Spark needs workers"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["run", "q1", *arguments])
    assert exited.value.code == 2
    assert complaint in capsys.readouterr().err


def test_workers_without_a_capacity_slow_nobody() -> None:
    assert all(worker.cpu is None for worker in UniformCluster().cluster().workers)
