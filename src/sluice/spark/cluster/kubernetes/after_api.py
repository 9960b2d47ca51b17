"""Waits until an API server is ready, then becomes another program: some of Kubernetes' give up after ten seconds.

python -m sluice.spark.cluster.kubernetes.after_api KUBECONFIG PROGRAM [ARGUMENTS]
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from sluice.spark.cluster.kubernetes.access import read_client
from sluice.spark.cluster.kubernetes.api import Api

PAUSE_S = 0.3


def wait_for_api(api: Api) -> None:
    while True:
        try:
            api.get("/apis")
        except OSError:
            time.sleep(PAUSE_S)
        else:
            return


if __name__ == "__main__":
    wait_for_api(read_client(Path(sys.argv[1])))
    os.execv(sys.argv[2], sys.argv[2:])
