"""`sluice place` as people and scripts call it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sluice.cli import main

PROFILE = {
    "operators": [
        {"name": "source", "parallelism": 1, "cpu": 1.0, "net": 5.0},
        {"name": "map", "parallelism": 2, "cpu": 2.0, "net": 1.0},
        {"name": "window", "parallelism": 5, "cpu": 4.0, "io": 9.0, "net": 0.5},
        {"name": "sink", "parallelism": 8, "cpu": 0.5},
    ],
    "edges": [
        {"from": "source", "to": "map", "kind": "rebalance"},
        {"from": "map", "to": "window", "kind": "hash"},
        {"from": "window", "to": "sink", "kind": "rebalance"},
    ],
}


@pytest.fixture
def profile(tmp_path: Path) -> str:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(PROFILE))
    return str(path)


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exited:
        main(["place", *arguments])
    return int(exited.value.code or 0)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert call(*arguments, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_counting_the_plans_of_the_paper(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, profile, "--workers", "4", "--slots", "4", "--count") == {"plans": 80}


@pytest.mark.parametrize("strategy", ["caps", "default", "evenly", "odrp"])
def test_the_answer_has_everything_the_contract_names(
    strategy: str, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, profile, "--workers", "4", "--slots", "4", "--strategy", strategy)
    assert found["feasible"] is True
    assert set(found["cost"]) == {"cpu", "io", "net"}
    assert all(0 <= value <= 1 for value in found["cost"].values())
    assert {"thresholds", "elapsed_s", "explored", "reason"} <= set(found)
    total: dict[str, int] = {}
    for tasks in found["placement"].values():
        assert sum(tasks.values()) <= 4
        for operator, number in tasks.items():
            total[operator] = total.get(operator, 0) + number
    assert total == {"source": 1, "map": 2, "window": 5, "sink": 8}


def test_a_plan_can_be_given_back_as_the_present_one(
    profile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = answer(capsys, profile, "--workers", "4", "--slots", "4")
    (tmp_path / "now.json").write_text(json.dumps(first))
    again = answer(capsys, profile, "--workers", "4", "--slots", "4", "--present", str(tmp_path / "now.json"))
    assert (again["moved"], again["placement"]) == (0, first["placement"])


def test_queries_placed_together_keep_their_names_apart(
    profile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.json").write_text(json.dumps(PROFILE))
    found = answer(capsys, profile, str(tmp_path / "other.json"), "--workers", "4", "--slots", "8")
    placed = {operator for tasks in found["placement"].values() for operator in tasks}
    assert {"job.window", "other.window"} <= placed


def test_workers_of_different_sizes(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, profile, "--workers", "3", "--slots", "8,4,4")
    assert {name: sum(tasks.values()) for name, tasks in found["placement"].items()} == {"w0": 8, "w1": 4, "w2": 4}


def test_the_picture_shows_every_task(profile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawing = tmp_path / "plan.svg"
    assert call(profile, "--workers", "4", "--slots", "4", "--picture", str(drawing)) == 0
    titles = [found.text for found in ElementTree.parse(drawing).iter("{http://www.w3.org/2000/svg}title")]
    assert {name: titles.count(name) for name in ("source", "map", "window", "sink")} == {
        "source": 1,
        "map": 2,
        "window": 5,
        "sink": 8,
    }
    printed = capsys.readouterr().out
    assert "w3" in printed
    assert "net" in printed
    assert call(profile, "--workers", "4", "--slots", "4", "--picture", str(tmp_path / "plan.html")) == 0
    assert "<svg" in (tmp_path / "plan.html").read_text()


def test_too_few_slots_is_an_answer_and_a_failure(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(profile, "--workers", "2", "--slots", "4", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["feasible"], found["placement"]) == (False, None)
    assert found["reason"] == "16 tasks need slots, the cluster has 8"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--strategy", "caps2"], "unknown placement strategy 'caps2'; known: caps, default, evenly, odrp"),
        (["--slots", "many"], "--slots takes a number or one per worker (8,8,4), got 'many'"),
        (["--slots", "8,8"], "--slots has 2 numbers for --workers 4"),
        (["--slots", "0"], "--slots must be at least 1"),
        (["--set", "cpu=2"], "cpu must be between 0 and 1, got 2.0"),
        (["--set", "colour=red"], "has no parameter 'colour'"),
        (["--picture", "plan.png"], "--picture takes a file ending in .svg or .html, got 'plan.png'"),
        (["--pinned", "nowhere.json"], "cannot read nowhere.json"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], complaint: str, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(profile, "--workers", "4", *arguments) == 2
    printed = capsys.readouterr().err
    assert complaint in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("{", "is not JSON"),
        ('{"operators": []}', "operators"),
        ('{"operators": [{"name": "a", "parallelism": 0}]}', "got 0"),
        ('{"operators": [{"name": "a", "parallelism": 1, "cpu": -1}]}', "got -1"),
        (
            '{"operators": [{"name": "a", "parallelism": 1}], "edges": [{"from": "a", "to": "b"}]}',
            "which is no operator",
        ),
    ],
)
def test_bad_profiles_name_what_is_wrong(
    data: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(data)
    assert call(str(path)) == 2
    assert complaint in capsys.readouterr().err


PUBLISHED = Path(os.environ.get("SLUICE_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "capsys"


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published profiles are not here")
@pytest.mark.parametrize("name", ["q1", "q2", "q6"])
def test_the_published_profiles_are_solved_and_proven(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, str(PUBLISHED / f"{name}.json"), "--workers", "4", "--slots", "8")
    assert found["gap"] == 0
    assert all(found["cost"][d] <= found["thresholds"][d] + 1e-9 for d in ("cpu", "io", "net"))
