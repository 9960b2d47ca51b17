"""The private calls of Spark that start a JVM before its session; see `sluice.spark.internals`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def start_jvm(settings: Mapping[str, str]) -> bool:
    """Start the JVM that the next session is going to use; false if there is one already. Seen on Spark 4.3.0."""
    from pyspark import SparkConf, SparkContext, java_gateway

    context: Any = SparkContext
    launch: Any = java_gateway.launch_gateway
    with context._lock:
        if context._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
            return False
        gateway = launch(SparkConf(loadDefaults=False).setAll(list(settings.items())))
        context._gateway, context._jvm = gateway, gateway.jvm
    return True


def end_jvm() -> None:
    """End the JVM that was started for a session. Seen on Spark 4.3.0."""
    from pyspark import SparkContext

    context: Any = SparkContext
    with context._lock:
        gateway, context._gateway, context._jvm = context._gateway, None, None
    gateway.shutdown()
    with gateway.proc as process:
        process.kill()
