"""Addresses of brokers, and where the settings of clients may appear: in no text that anybody writes down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluice.errors import BadInputError
from sluice.spark.kafka.choice import chosen_broker
from sluice.spark.kafka.connection import PASSING, Broker, is_passing, patiently
from sluice.spark.kafka.log import KafkaTopic

SECRET = "correct-horse-battery"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    login = f"sasl.mechanisms=PLAIN\nsasl.username=me\nsasl.password={SECRET}\n"
    path.write_text(f"# of the test\nsecurity.protocol=SASL_SSL\n{login}")
    return path


def test_an_address_has_hosts_a_prefix_and_a_file_of_settings(properties: Path) -> None:
    broker = Broker.parse(f"kafka://a:9092,b:9093/shop?config={properties}")
    assert (broker.bootstrap, broker.prefix) == ("a:9092,b:9093", "shop")
    assert broker.name_of("bids") == "shop.bids"
    assert Broker.parse(broker.url) == broker


@pytest.mark.parametrize(
    "url", ["kafka://", "kafka://host", "http://a:1", "kafka://a:1/x y", "kafka://a:1?password=x", "a:9092"]
)
def test_an_address_that_is_none_is_quoted(url: str) -> None:
    with pytest.raises(BadInputError, match="got"):
        Broker.parse(url)


def test_settings_reach_the_client_and_nothing_else(properties: Path, tmp_path: Path) -> None:
    broker = chosen_broker("shop", f"kafka://a:9092?config={properties}", tmp_path / "root")
    assert broker is not None
    client = broker.client(group_id="g")
    assert (client["sasl.password"], client["group.id"]) == (SECRET, "g")
    topic = KafkaTopic(broker, broker.name_of("bids"), registered=["map"])
    saved = (tmp_path / "root" / "topics.json").read_text()
    for written in (broker.url, repr(broker), topic.locator, repr(topic), saved):
        assert SECRET not in written
        assert str(properties) in written or written == repr(topic)
    assert KafkaTopic.open(topic.locator).broker == broker
    assert KafkaTopic.open(topic.locator).registered == ["map"]


def test_a_broken_file_of_settings_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"sasl.username=me\n{SECRET}\n")
    with pytest.raises(BadInputError, match="line 2: expected name=value") as raised:
        Broker.parse(f"kafka://a:9092?config={path}").client()
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"sasl.nonsense={SECRET}", "No such configuration property"),
        (f"security.protocol={SECRET}", "Invalid value ... for configuration property"),
        ("security.protocol=SSL\nssl.ca.location=/no/such/file", "ssl.ca.location failed"),
    ],
)
def test_settings_that_no_client_takes_are_one_line_before_anything_starts(line: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"{line}\n")
    with pytest.raises(BadInputError, match=why) as raised:
        chosen_broker("shop", f"kafka://a:9092?config={path}", tmp_path / "root")
    assert SECRET not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "root").exists()


def test_a_run_keeps_its_broker_and_prefix(tmp_path: Path) -> None:
    first = chosen_broker("q5", "kafka://a:9092", tmp_path)
    assert first is not None
    assert first.prefix is not None
    assert first.prefix.startswith("q5-")
    assert chosen_broker("q5", None, tmp_path) == first
    assert chosen_broker("q5", "kafka://a:9092", tmp_path) == first
    (tmp_path / "plan.json").touch()
    with pytest.raises(BadInputError, match="use another folder"):
        chosen_broker("q5", "kafka://b:9092", tmp_path)
    assert json.loads((tmp_path / "topics.json").read_text())["topics"] == first.url


def test_an_address_that_was_wrong_can_be_corrected_while_no_run_has_begun(tmp_path: Path) -> None:
    assert chosen_broker("q5", "kafka://wrong:9092", tmp_path) is not None
    corrected = chosen_broker("q5", "kafka://right:9092", tmp_path)
    assert corrected is not None
    assert corrected.bootstrap == "right:9092"
    assert chosen_broker("q5", None, tmp_path) == corrected


def test_a_run_that_goes_on_may_have_its_settings_in_another_file(properties: Path, tmp_path: Path) -> None:
    root, url = tmp_path / "root", "kafka://a:9092?config="
    first = chosen_broker("shop", f"{url}{properties}", root)
    moved = properties.rename(tmp_path / "moved.properties")
    second = chosen_broker("shop", f"{url}{moved}", root)
    assert first is not None
    assert second is not None
    assert (second.prefix, second.config) == (first.prefix, str(moved))
    assert chosen_broker("shop", None, root) == second


def test_a_password_in_an_address_is_refused_and_not_quoted() -> None:
    with pytest.raises(BadInputError, match="config=FILE") as raised:
        Broker.parse(f"kafka://me:{SECRET}@a:9092")
    assert SECRET not in str(raised.value)


def test_a_topic_of_others_is_theirs_even_where_its_name_begins_like_ours() -> None:
    """Nobody notes the ends of its batches: a reader that waited for them would wait for ever."""
    theirs = KafkaTopic(Broker(bootstrap="a:9092", prefix="shop"), "shop.orders", is_theirs=True, registered=["map"])
    again = KafkaTopic.open(theirs.locator)
    assert (again.is_ours, again.registered, again.name) == (False, ["map"], "shop.orders")
    assert KafkaTopic.open(KafkaTopic(theirs.broker, "shop.bids").locator).is_ours


@pytest.mark.parametrize("content", [None, b"sasl.password=\xff\xfe"])
def test_settings_that_cannot_be_read_are_one_line(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.touch()
    broker = Broker.parse(f"kafka://a:9092?config={path}")
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(BadInputError, match=r"client\.properties.* (cannot be read|is no text)"):
        broker.client()


def test_a_run_with_embedded_topics_does_not_move_to_a_broker(tmp_path: Path) -> None:
    assert chosen_broker("q5", None, tmp_path) is None
    (tmp_path / "plan.json").touch()
    with pytest.raises(BadInputError, match="topics in folders"):
        chosen_broker("q5", "kafka://a:9092", tmp_path)


def test_what_a_broker_says_while_it_restarts_is_waited_out() -> None:
    kafka = pytest.importorskip("confluent_kafka")
    assert [name for name in PASSING if not hasattr(kafka.KafkaError, name)] == []
    fenced = kafka.KafkaError(kafka.KafkaError.FENCED_LEADER_EPOCH)
    answers = [kafka.KafkaException(fenced), 7]

    def ask() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert patiently(ask) == 7
    assert not is_passing(kafka.KafkaError(kafka.KafkaError._AUTHENTICATION))
