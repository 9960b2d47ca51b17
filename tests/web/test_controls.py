"""Controls: only with the token, on record, and in force from the next cycle."""

import pytest

from sluice.journal.file import read_journal, read_runs
from sluice.journal.records import Intervention
from tests.web.conftest import TOKEN

WITH_TOKEN = {"authorization": f"Bearer {TOKEN}"}
CONTROLS = {
    "pause": {},
    "resume": {},
    "dry_run": {"on": True},
    "pin": {"operator": "a", "parallelism": 2},
    "unpin": {"operator": "a"},
    "policy": {"name": "static"},
}


def post(client, shelf_id, control, body=None, headers=WITH_TOKEN):
    return client.post(
        f"/api/control/{control}?journal={shelf_id}", json=body or CONTROLS.get(control), headers=headers
    )


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        (TOKEN, {}, 401),
        (TOKEN, {"authorization": "Bearer wrong"}, 401),
        (TOKEN, {"authorization": "Bearer "}, 401),
        (TOKEN, {"authorization": f"Basic {TOKEN}"}, 401),
        (TOKEN, {"authorization": "Bearer \u00fc".encode()}, 401),
        (None, WITH_TOKEN, 403),
        (None, {}, 403),
    ],
)
def test_without_the_token_every_control_is_refused(client_of, live, control, token, headers, status):
    client = client_of(library=live.library, token=token)
    assert post(client, live.shelf.id, control, headers=headers).status_code == status
    assert post(client, "nobody", control, headers=headers).status_code == status


def test_a_token_in_the_address_is_none(client_of, live):
    client = client_of(library=live.library)
    answer = client.post(f"/api/control/pause?token={TOKEN}", json={})
    assert answer.status_code == 401


def test_the_journal_of_another_process_takes_no_controls(client_of, journal):
    client = client_of(journal)
    key = client.get("/api/journals").json()["journals"][0]["id"]
    answer = post(client, key, "pause")
    assert answer.status_code == 409
    assert "another process" in answer.json()["error"]


def interventions(live):
    return [record for record in read_journal(live.journal.path) if isinstance(record, Intervention)]


def test_a_control_is_on_record_and_holds_from_the_next_cycle(client_of, live):
    client = client_of(library=live.library)
    answers = []

    def click(number):
        step = {1: ("pause", None), 2: ("pin", {"operator": "a", "parallelism": 6}), 3: ("unpin", None)}
        step |= {4: ("resume", None)}
        if number in step:
            answers.append(post(client, live.shelf.id, *step[number]).status_code)

    live.run(6, click)
    assert answers == [202] * 4
    assert [one.sentence() for one in interventions(live)] == ["pause", "pin a to 6", "unpin a", "resume"]
    assert [one.cycle for one in interventions(live)] == [1, 2, 3, 4]
    (run,) = read_runs(live.journal.path)
    assert [report.cycle.target.parallelism["a"] for report in run.reports] == [3, 3, 6, 6, 3, 3]
    assert "paused" in run.cycles[1].recommendation.reason
    assert run.cycles[2].notes == ("pinned by hand: a 3 -> 6",)


def test_a_dry_run_begins_and_ends_while_it_runs(client_of, live):
    client = client_of(library=live.library)
    live.run(
        4,
        lambda number: post(client, live.shelf.id, "dry_run", {"on": number == 0}) if number in (0, 2) else None,
    )
    (run,) = read_runs(live.journal.path)
    assert [report.cycle.action for report in run.reports] == ["dry_run", "dry_run", "apply", "none"]


def test_the_policy_is_changed_and_its_settings_checked(client_of, live):
    client = client_of(library=live.library)
    said = []

    def click(number):
        if number == 1:
            said.append(post(client, live.shelf.id, "policy", {"name": "nobody"}))
            said.append(post(client, live.shelf.id, "policy", {"name": "static", "settings": {"x": 1}}))
            said.append(post(client, live.shelf.id, "policy", {"name": "static"}))

    live.run(3, click)
    assert [answer.status_code for answer in said] == [400, 400, 202]
    assert "unknown policy 'nobody'" in said[0].json()["error"]
    (run,) = read_runs(live.journal.path)
    assert run.cycles[0].recommendation.reason.startswith("wants")
    assert not run.cycles[2].recommendation.reason.startswith("wants")
    assert [one.sentence() for one in interventions(live)] == ["change the policy to static"]


@pytest.mark.parametrize(
    ("control", "body", "says"),
    [
        ("pin", {"operator": "nobody", "parallelism": 2}, "unknown operator 'nobody'; known: a"),
        ("pin", {"operator": "a", "parallelism": 0}, "parallelism"),
        ("pin", {"operator": "a"}, "parallelism"),
        ("dry_run", {"on": "perhaps"}, "on"),
        ("pause", {"more": 1}, "more"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(client_of, live, control, body, says):
    client = client_of(library=live.library)
    answers = []
    live.run(2, lambda number: answers.append(post(client, live.shelf.id, control, body)))
    assert {answer.status_code for answer in answers} == {400}
    assert says in answers[0].json()["error"]
    assert interventions(live) == []


def test_when_the_run_is_over_nothing_takes_controls(client_of, live):
    client = client_of(library=live.library)
    live.run(1, lambda _: None)
    assert post(client, live.shelf.id, "pause").status_code == 409
