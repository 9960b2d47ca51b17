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
    goes on may have its settings in another file. What was chosen for a run that never began holds nobody.
    """
    asked = None if url is None else Broker.parse(url)
    if asked is not None:
        asked.check()
    has_begun = (root / "plan.json").exists()
    kept = _kept(root, EMBEDDED if has_begun else None)
    if asked is None and kept is not None:
        return None if kept == EMBEDDED else Broker.parse(kept)
    if asked is not None and kept is not None:
        before = None if kept == EMBEDDED else Broker.parse(kept.partition("?")[0] if asked.config else kept)
        if before is not None and asked.bootstrap == before.bootstrap and asked.prefix in (None, before.prefix):
            return _saved(root, replace(before, config=asked.config or before.config))
        if has_begun:
            raise BadInputError(
                f"{str(root)!r} holds a run with its topics in {kept}, not in {url}; use another folder"
            )
    if asked is not None and asked.prefix is not None:
        _check_unused(asked)
    return _saved(root, asked and asked.with_prefix(asked.prefix or f"{pipeline}-{uuid.uuid4().hex[:8]}"))


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


def _kept(root: Path, otherwise: str | None) -> str | None:
    path = root / FILE
    return str(json.loads(path.read_text())["topics"]) if path.exists() else otherwise


def _saved(root: Path, broker: Broker | None) -> Broker | None:
    root.mkdir(parents=True, exist_ok=True)
    kept = json.dumps({"topics": broker.url if broker else EMBEDDED})
    replace_file(root / FILE, kept.encode(), durable=True)
    return broker
