"""What a page refuses: foreign hosts and origins, and journals that are out for harm."""

import json

import pytest

from sluice.cli import main
from sluice.web.library import Library
from tests.journal.records import cycle, header
from tests.web.conftest import write

EVIL = '<img src=x onerror="document.title=1"><script>alert(1)</script>'


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8642"}, 200),
        ({"host": "[::1]:8642"}, 200),
        ({"host": "10.0.0.7:8642"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:8642"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://127.0.0.1:8642"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/journals", "/metrics", "/assets/app.js"])
def test_only_our_own_page_may_ask(client_of, journal, headers, status, path):
    assert client_of(journal).get(path, headers=headers).status_code == status


def test_a_name_can_be_allowed(client_of, journal):
    client = client_of(journal, hosts=("sluice.example",))
    assert client.get("/metrics", headers={"host": "sluice.example"}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/journals", "/assets/app.js", "/nothing"])
def test_every_answer_is_strict(client_of, journal, path):
    policy = client_of(journal).get(path).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_page_has_nothing_inline_and_nothing_of_elsewhere(client_of, journal):
    client = client_of(journal)
    page = client.get("/").text
    assert "<style" not in page
    assert "onclick" not in page
    assert page.count("<script") == page.count('<script type="module" src="/assets/')
    for name in ("app", "dom", "chart", "graph", "panels", "controls"):
        script = client.get(f"/assets/{name}.js").text
        assert "innerHTML" not in script
        assert "http" not in script.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    "path",
    ["/assets/../app.py", "/assets/..%2fapp.py", "/api/journals/..%2f..%2fetc%2fpasswd", "/assets/%2e%2e/app.py"],
)
def test_no_other_file_is_served(client_of, journal, path):
    assert client_of(journal).get(path).status_code in (404, 403)


HOSTILE = [
    b"",
    b"not json",
    b"[]",
    b"null",
    b'{"kind":"cycle"}',
    b'{"kind":"nobody"}',
    b'{"kind":"cycle","cycle":1e999,"time_s":"x"}',
    b"\xff\xfe\x00\x01",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    EVIL.encode(),
    json.dumps({"kind": "end", "time_s": 1, "error": EVIL}).encode(),
    json.dumps({"kind": "intervention", "time_s": 1, "control": EVIL}).encode(),
    json.dumps({"kind": "outcome", "cycle": -5, "status": EVIL}).encode(),
]


@pytest.mark.parametrize("first", [True, False], ids=["with-header", "without-header"])
def test_hostile_lines_are_text_and_the_rest_is_read(client_of, tmp_path, first):
    path = tmp_path / "journal.jsonl"
    good = [header().to_json().encode()] if first else []
    path.write_bytes(b"\n".join([*good, *HOSTILE, cycle(0).to_json().encode(), b""]))
    client = client_of(path)
    key = client.get("/api/journals").json()["journals"][0]["id"]
    data = client.get(f"/api/journals/{key}").json()
    assert data["cycles"] == 1
    assert data["bad_lines"]["count"] == 12
    assert EVIL in {one["text"] for one in data["bad_lines"]["first"]}
    assert client.get("/metrics").status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"time_s": -5.0},
        {"cycle": -1},
        {"observation": {"time_s": 1, "interval_s": 0, "operators": {}}},
        {"observation": {"time_s": 1, "interval_s": 1e308, "operators": {"a": {"parallelism": 10**15}}}},
        {"observation": {"time_s": 1, "interval_s": 1, "operators": {"__proto__": {"parallelism": 1}}}},
        {
            "observation": {
                "time_s": 1,
                "interval_s": 1,
                "operators": {"a": {"parallelism": 1}, "b": {"parallelism": 1}},
                "edges": [["a", "b"], ["b", "a"], ["a", "a"], ["x", "y"]],
            }
        },
        {"observation": {"time_s": 1, "interval_s": 1, "operators": {str(n): {"parallelism": 1} for n in range(5000)}}},
        {"recommendation": {"reason": EVIL, "learned": {"curves": 3, "forecast": {"time_s": [1], "mean": ["x"]}}}},
        {"target": {"parallelism": {}, "placement": {"tasks": {"w": 3, EVIL: {EVIL: "many"}}}}},
        {"action": "apply", "recommendation": {}},
        {"observation": {"workers": {EVIL: {"source_tasks": {EVIL: 1, "source": "many"}}, "w": []}}},
        {"shadows": {EVIL: {"parallelism": [], "reason": 7}}},
    ],
)
def test_records_that_nobody_would_write_do_not_break_the_page(client_of, tmp_path, change):
    data = {**json.loads(cycle(0, action="apply").to_json()), **change}
    path = write(tmp_path / "journal.jsonl", header())
    path.write_text(path.read_text() + json.dumps(data) + "\n")
    client = client_of(path)
    key = client.get("/api/journals").json()["journals"][0]["id"]
    assert client.get(f"/api/journals/{key}").status_code == 200
    assert client.get(f"/api/journals/{key}/decisions/0").status_code in (200, 404)


def test_a_line_without_end_is_not_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("sluice.web.lines.LONGEST_LINE", 1000)
    monkeypatch.setattr("sluice.web.lines.BLOCK", 500)
    path = write(tmp_path / "journal.jsonl", header())
    path.write_bytes(path.read_bytes() + b"x" * 10_000 + b"\n" + cycle(0).to_json()[:0].encode())
    (shelf,) = Library([path]).shelves()
    assert shelf.refresh().bad_lines == 1


def test_a_short_token_and_a_missing_place_are_one_line(capsys, tmp_path):
    for arguments, says in [(["--token", "x"], "at least 8"), ([str(tmp_path / "none")], "no journal and no folder")]:
        with pytest.raises(SystemExit) as ended:
            main(["dashboard", *arguments])
        assert ended.value.code == 2
        assert says in capsys.readouterr().err
