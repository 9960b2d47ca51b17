"""Runs on workers of limited size: the planner places after every decision, and it matters how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluice.cli import main
from sluice.control.guards import Guards
from sluice.journal.file import MemoryJournal
from sluice.lab.pipelines import pipelines
from sluice.lab.placing import PlacementSetup, UniformCluster
from sluice.lab.run import RunSpec, run, simulated_engine
from sluice.lab.summary import summarise
from sluice.lab.workloads import workloads
from sluice.placement import placers
from sluice.policy import policies

CLUSTER = UniformCluster(workers=12, slots=8, cpu=3.0).cluster()


def throughput_share(strategy: str) -> tuple[float, list[dict[str, object]]]:
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
    return summarise(journal.entries, 30.0).throughput_ratio, journal.entries


def test_the_same_policy_carries_more_with_a_better_placement() -> None:
    caps, entries = throughput_share("caps")
    default, _ = throughput_share("default")
    assert caps > default + 0.03
    applied = [entry for entry in entries if entry.get("applied")]
    assert applied
    assert all(any(str(note).startswith("placement:") for note in entry["plan"]["notes"]) for entry in applied)  # type: ignore[index]


def test_the_command_line_places_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "q1", "--duration", "600", "--placement", "evenly", "--cluster", "slots=16", "--json"]
    with pytest.raises(SystemExit) as exited:
        main([*arguments, "--out", str(tmp_path)])
    assert not exited.value.code
    assert json.loads(capsys.readouterr().out)["lost_records"] == 0
    cycles = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert any(cycle["plan"]["placement"] for cycle in cycles if cycle["kind"] == "cycle" and cycle["applied"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--cluster", "slots=4"], "--cluster needs a --placement"),
        (["--placement", "nowhere"], "unknown placement strategy 'nowhere'"),
        (["--placement", "caps", "--cluster", "slots=0"], "slots must be above 0, got 0"),
        (["--placement", "caps", "--engine", "spark"], "--placement is for the simulator"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["run", "q1", *arguments])
    assert exited.value.code == 2
    assert complaint in capsys.readouterr().err


def test_workers_without_a_capacity_slow_nobody() -> None:
    assert all(worker.cpu is None for worker in UniformCluster().cluster().workers)
