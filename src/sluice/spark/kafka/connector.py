"""Spark's own Kafka connector for the installed Spark, given to a session as `spark.jars`.

Not every version of Spark has its connector on Maven Central. Where it is missing, a mix of the newest parts that are
there is used; 4.2.0 with the token provider of a preview was seen working on Spark 4.3.0, in batches, micro-batches and
real-time mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sluice.errors import SluiceError
from sluice.spark.cluster.jars import JarSet

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
COMMON = {"org.apache.kafka:kafka-clients": "3.9.2", "org.apache.commons:commons-pool2": "2.13.1"}
MIX = {CONNECTOR: "4.2.0", TOKENS: "4.1.0-preview1"}


def connector_jars() -> Path:
    """The folder with the jars; the first call downloads some 10 MB."""
    import pyspark

    own = _jar_set(f"spark-kafka-{pyspark.__version__}", {CONNECTOR: pyspark.__version__, TOKENS: pyspark.__version__})
    mixed = _jar_set(f"spark-kafka-{MIX[CONNECTOR]}-mixed", MIX)
    if own.folder.is_dir():
        return own.folder
    if mixed.folder.is_dir():
        return mixed.folder
    try:
        return own.get()
    except SluiceError:
        return mixed.get()


def session_settings() -> dict[str, str]:
    """What a session needs to read and write Kafka."""
    return {"spark.jars": ",".join(str(jar) for jar in sorted(connector_jars().glob("*.jar")))}


def _jar_set(name: str, versions: Mapping[str, str]) -> JarSet:
    return JarSet(
        name=name,
        whose="Spark's Kafka connector",
        needed_by="a Spark that reads Kafka",
        artifacts={**versions, **COMMON},
        transitive=False,
    )
