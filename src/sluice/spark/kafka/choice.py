"""On which broker, and under which prefix, the topics of a run are: chosen once and kept beside its checkpoints."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

from sluice.errors import BadInputError, SluiceError
from sluice.files import replace_file
from sluice.spark.kafka.commits import COMMITS, markers_end
from sluice.spark.kafka.connection import Broker, patiently
from sluice.spark.kafka.log import partition_count

FILE = "topics.json"
EMBEDDED = "folders"


def chosen_broker(pipeline: str, url: str | None, root: Path) -> Broker | None:
    """The broker asked for, or the one a run left here began with; None for embedded topics.

    A run that begins gets a prefix of its own unless one is given: checkpoints and topics belong together. One that
    goes on may have its settings in another file.
    """
    path = root / FILE
    asked = None if url is None else Broker.parse(url)
    if asked is not None:
        asked.check()
    if path.exists():
        kept = json.loads(path.read_text())["topics"]
        moved = asked is not None and asked.config is not None
        before = None if kept == EMBEDDED else Broker.parse(kept.partition("?")[0] if moved else kept)
        if asked is not None and not _agrees(asked, before):
            raise BadInputError(
                f"{str(root)!r} holds a run with its topics in {kept}, not in {url}; use another folder"
            )
        if before is not None and asked is not None and moved:
            before = replace(before, config=asked.config)
            _save(path, before)
        return before
    broker = asked and asked.with_prefix(asked.prefix or f"{pipeline}-{uuid.uuid4().hex[:8]}")
    if broker is not None and (root / "plan.json").exists():
        raise BadInputError(
            f"{str(root)!r} holds a run with its topics in {EMBEDDED}, not in {url}; use another folder"
        )
    if asked is not None and asked.prefix is not None:
        _check_unused(asked)
    root.mkdir(parents=True, exist_ok=True)
    _save(path, broker)
    return broker


def _check_unused(broker: Broker) -> None:
    """The markers of another run would say of the first batches of this one that they are written already."""
    commits = broker.name_of(COMMITS)
    try:
        is_used = patiently(lambda: partition_count(broker, commits)) and markers_end(broker) > 0
    except SluiceError as error:
        raise BadInputError(f"no broker answers at {broker.bootstrap!r}: {error}") from error
    if is_used:
        raise BadInputError(
            f"topics that begin with {broker.prefix!r} on {broker.bootstrap} belong to an earlier run: go on with its "
            f"--root, take another prefix, or delete them ({commits!r} at least)"
        )


def _save(path: Path, broker: Broker | None) -> None:
    replace_file(path, json.dumps({"topics": broker.url if broker else EMBEDDED}).encode(), durable=True)


def _agrees(asked: Broker, before: Broker | None) -> bool:
    if before is None:
        return False
    return asked.bootstrap == before.bootstrap and asked.prefix in (None, before.prefix)
