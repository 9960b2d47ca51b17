"""Which broker, and how its clients are set up: `kafka://host:port[,host:port][/prefix][?config=client.properties]`.

What a client needs beyond the address (SASL, TLS) is in a properties file with librdkafka's names. Every process reads
that file itself: its content is never part of a URL, an option, a command line or anything that is written down.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

from sluice.errors import BadInputError, SluiceError
from sluice.spark.kafka.clients import READING, library

SCHEME = "kafka://"
TIMEOUT_S = 30.0
RETRY_S = 0.2
PASSING = {
    "BROKER_NOT_AVAILABLE",
    "CONCURRENT_TRANSACTIONS",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "KAFKA_STORAGE_ERROR",
    "LEADER_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "NOT_CONTROLLER",
    "NOT_COORDINATOR",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_LEADER_FOR_PARTITION",
    "OFFSET_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "REQUEST_TIMED_OUT",
    "STALE_BROKER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "UNKNOWN_TOPIC_ID",
    "UNKNOWN_TOPIC_OR_PART",
    "UNSTABLE_OFFSET_COMMIT",
    "_ALL_BROKERS_DOWN",
    "_RESOLVE",
    "_RETRY",
    "_TIMED_OUT",
    "_TRANSPORT",
    "_WAIT_CACHE",
    "_WAIT_COORD",
}
"""What a broker may say while it starts, or while another takes over from it."""
Answer = TypeVar("Answer")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}\Z")
_HOST = re.compile(r"[^\s,:/]+:\d{1,5}\Z")


@dataclass(frozen=True, kw_only=True)
class Broker:
    """Where the topics of a pipeline are. `prefix` begins the names of all it makes there."""

    bootstrap: str
    prefix: str | None = None
    config: str | None = None

    @classmethod
    def parse(cls, url: str) -> Broker:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        prefix = parts.path.strip("/") or None
        hosts = parts.netloc.split(",")
        if "@" in parts.netloc:
            raise BadInputError("user and password belong into a file, kafka://host:port?config=FILE, not into the URL")
        if not url.startswith(SCHEME) or not all(map(_HOST.match, hosts)) or set(query) - {"config"}:
            raise BadInputError(
                f"topics must be {SCHEME}host:port[,host:port][/prefix][?config=client.properties], got {url!r}"
            )
        if prefix is not None and not _NAME.match(prefix):
            raise BadInputError(f"a prefix of Kafka topics has letters, digits, '.', '_' and '-', got {prefix!r}")
        config = query.get("config", [None])[0]
        if config is not None and not Path(config).is_file():
            raise BadInputError(f"no file {config!r} with settings of Kafka clients")
        return cls(bootstrap=parts.netloc, prefix=prefix, config=str(Path(config).resolve()) if config else None)

    @property
    def url(self) -> str:
        config = f"?config={quote(self.config, safe='/')}" if self.config else ""
        return f"{SCHEME}{self.bootstrap}{'/' + self.prefix if self.prefix else ''}{config}"

    @property
    def address(self) -> tuple[str, str | None]:
        """What a client depends on."""
        return self.bootstrap, self.config

    def check(self) -> None:
        """Bad input where no client can be made with its settings; values, which may be secret, are not quoted."""
        kafka = library()
        try:
            kafka.Consumer(self.client(**READING)).close()
        except kafka.KafkaException as error:
            reason = str(error.args[0].str())
            for value in read_properties(self.config).values():
                reason = reason.replace(f'"{value}"', "...")
            raise BadInputError(f"settings of Kafka clients in {self.config!r}: {reason}") from None

    def with_prefix(self, prefix: str) -> Broker:
        return replace(self, prefix=prefix)

    def name_of(self, dataset: str) -> str:
        return f"{self.prefix}.{dataset}" if self.prefix else dataset

    def client(self, **settings: Any) -> dict[str, Any]:
        """Settings of one client. Errors are reported where they are handled: librdkafka logs nothing."""
        own = {name.replace("_", "."): value for name, value in settings.items()}
        return {"bootstrap.servers": self.bootstrap, "log_level": 0, **read_properties(self.config), **own}


def read_properties(path: str | None) -> dict[str, str]:
    """A file of `name=value` lines; what is wrong with it is said without quoting a value."""
    if path is None:
        return {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadInputError(f"settings of Kafka clients: {path!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BadInputError(f"settings of Kafka clients: {path!r} is no text in UTF-8") from None
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith(("#", "!")):
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise BadInputError(f"{path!r}, line {number}: expected name=value")
        found[name.strip()] = value.strip()
    return found


def patiently(ask: Callable[[], Answer]) -> Answer:
    """Ask the broker, and again while it cannot be reached: one that restarts is back within seconds."""
    kafka = library()
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return ask()
        except kafka.KafkaException as problem:
            error = problem.args[0]
            if time.monotonic() > deadline_s or not is_passing(error):
                raise SluiceError(f"Kafka: {error.str()}") from problem
            time.sleep(RETRY_S)


def is_passing(error: Any) -> bool:
    """Whether trying again can help: Kafka says so, or the broker restarts, or a new topic is not known everywhere."""
    return bool(error.retriable()) or error.name() in PASSING
