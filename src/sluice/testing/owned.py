"""What a program has started ends with it, however it ends."""

from __future__ import annotations

import os
import signal
import sys

from sluice.spark.cluster.supervisor import OWNER


def own_what_is_started() -> None:
    """Clusters and brokers started from now on end with this process; on SIGTERM its blocks are left in order first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.environ[OWNER] = str(os.getpid())
