from __future__ import annotations

import subprocess
import sys

PRELOAD = """
import sys
from sluice.spark import worker_daemon
worker_daemon.preload()
missing = [name for name in worker_daemon.PRELOADED if name not in sys.modules]
print(worker_daemon.thread_count(), missing, 'pandas' in sys.modules)
"""


def test_all_is_imported_without_starting_a_thread():
    """A fork copies only the calling thread: a lock another one held would stay locked for ever."""
    done = subprocess.run([sys.executable, "-c", PRELOAD], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1 [] False"
