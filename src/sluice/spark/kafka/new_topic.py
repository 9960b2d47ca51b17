"""New topics, made by a process of their own: the library answers such a request in one of its own threads.

Nothing else here does that (see `clients`). A process that fails is started again: what it does can be done twice.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from sluice.errors import BadInputError, SluiceError
from sluice.spark.kafka.clients import library
from sluice.spark.kafka.connection import TIMEOUT_S, Broker

TRIES = 3
UNREACHABLE = ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE")


def make_topic(broker: Broker, topic: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
    """A topic that is there already stays as it is."""
    library()
    order = {"url": broker.url, "topic": topic, "partitions": partitions, "settings": dict(settings or {})}
    for _ in range(TRIES):
        done = subprocess.run(
            [sys.executable, "-m", __name__], input=json.dumps(order), capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            break
    else:
        raise SluiceError(f"topic {topic!r} was not made: {done.stderr.strip()[-300:] or done.returncode}")
    problem = json.loads(done.stdout)
    if problem is None or problem["name"] == "TOPIC_ALREADY_EXISTS":
        return
    if problem["name"] in UNREACHABLE:
        settings_used = f", or none that takes the settings in {broker.config!r}" if broker.config else ""
        raise BadInputError(f"no broker answers at {broker.bootstrap!r}{settings_used}")
    raise SluiceError(f"topic {topic!r} was not made: {problem['text']}")


def main() -> None:
    """Prints what Kafka says against it, or null."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    order = json.load(sys.stdin)
    with AdminClient(Broker.parse(order["url"]).client()) as admin:
        new = NewTopic(order["topic"], order["partitions"], config=order["settings"])
        (made,) = admin.create_topics([new], request_timeout=TIMEOUT_S).values()
        try:
            made.result(2 * TIMEOUT_S)
        except KafkaException as error:
            print(json.dumps({"name": error.args[0].name(), "text": error.args[0].str()}))
        else:
            print("null")


if __name__ == "__main__":
    main()
