"""Attaches to every application that a program starts, without a line of code in the program.

Sessions of Spark Connect have no driver in this process and pass unseen. A session that cannot be attached is one line
in the log; the program goes on.
"""

from __future__ import annotations

import atexit
import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluice.spark.attach import Attachment, attach
from sluice.spark.attach.configuration import read_configuration
from sluice.spark.attach.log import line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("sluice")


class SessionHook:
    """Attaches once per application, with the settings of its Spark configuration."""

    def __init__(self, attach: Callable[[Any], Attachment] = attach) -> None:
        self._attach = attach
        self._attachments: dict[str, Attachment | None] = {}

    def install(self, sessions: type[Any]) -> None:
        """From now on see every session of this class, which is PySpark's `SparkSession`, as soon as it is made."""
        make = sessions.__init__

        @functools.wraps(make)
        def make_and_attach(session: Any, *args: Any, **kwargs: Any) -> None:
            make(session, *args, **kwargs)
            self.on_session(session)

        setattr(sessions, "__init__", make_and_attach)  # noqa: B010 - a method
        atexit.register(self.close)

    def on_session(self, spark: SparkSession) -> None:
        try:
            application = str(spark.sparkContext.applicationId)
            if application in self._attachments:
                return
            self._attachments[application] = None
            if read_configuration(spark).enabled:
                attachment = self._attachments[application] = self._attach(spark)
                attachment.gives_way = True
        except Exception as error:
            _log_not_attached(f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Detach; says so if the program made no session that could be seen."""
        if not self._attachments:
            _log_not_attached("the program made no Spark session in its own driver (one of Spark Connect has none)")
        for attachment in self._attachments.values():
            if attachment is not None:
                attachment.detach()


def _log_not_attached(why: str) -> None:
    log.error("%s", line({"event": "not_attached", "error": why, "detail": "the program runs as without sluice"}))
