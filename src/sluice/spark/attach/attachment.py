"""A running attachment: the loop in a thread of the driver, its watchers, and how it ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType

from typing_extensions import Self

from sluice.control.loop import Loop, Watcher
from sluice.journal.file import Journal
from sluice.journal.results import CycleReport
from sluice.model import Target
from sluice.spark.attach.application import NO_QUERY
from sluice.spark.attach.log import line, log_report
from sluice.spark.attach.page import AttachmentPage
from sluice.spark.attach.settings import AttachSettings
from sluice.web.metrics import MetricsServer

log = logging.getLogger("sluice")
FOREVER_S = float("inf")


class Attachment:
    """A running attachment: detach it, or use it as a context manager. The job goes on either way."""

    def __init__(
        self,
        loop: Loop,
        settings: AttachSettings,
        executors: int,
        ended: threading.Event,
        metrics: MetricsServer | None = None,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._executors = executors
        self._ended = ended
        self._watchers: list[Watcher] = [log_report]
        self._on_end = on_end
        self._metrics = metrics
        if metrics is not None:
            self._watchers.append(metrics)
        self.failure: BaseException | None = None
        self.page: AttachmentPage | None = None
        self.gives_way = False
        """Whether the next attachment may take its place: that of `sluice submit` to one in the program itself."""
        self._thread = threading.Thread(target=self._watch, name="sluice-attach", daemon=True)

    @property
    def journal(self) -> Journal:
        return self._loop.journal

    @property
    def is_watching(self) -> bool:
        return self._thread.is_alive()

    def on_report(self, watcher: Watcher) -> None:
        """Call this after every cycle, and again when more is known of its outcome, in the attachment's thread."""
        self._watchers.append(watcher)

    def detach(self) -> None:
        """Stop watching and scaling; executors stay as they are."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()

    def _start(self) -> None:
        self._thread.start()

    def _watch(self) -> None:
        try:
            self._loop.run(
                Target(parallelism={NO_QUERY: max(1, self._executors)}),
                duration_s=FOREVER_S,
                interval_s=self._settings.interval_s,
                on_report=self._report,
                should_stop=self._ended.is_set,
            )
        except BaseException as failure:  # the user's job must not notice
            self.failure = failure
            if not self._ended.is_set():
                log.error(
                    "%s",
                    line(
                        {
                            "event": "ended",
                            "error": f"{type(failure).__name__}: {failure}",
                            "detail": "the job goes on with the executors it has",
                        }
                    ),
                )
        finally:
            for served in (self._metrics, self.page):
                if served is not None:
                    served.close()
            self._on_end()

    def _report(self, report: CycleReport) -> None:
        for watcher in list(self._watchers):
            try:
                watcher(report)
            except Exception as error:
                self._watchers.remove(watcher)
                why = f"{type(error).__name__}: {error}"
                log.warning("%s", line({"event": "watcher_failed", "error": why, "detail": "not called again"}))
