"""Spark's own Kafka connector and its Avro functions for the installed Spark, given to a session as `spark.jars`.

Not every version of Spark has them on Maven Central. Where they are missing, the newest parts that are there are used;
a connector of 4.2.0 with the token provider of a preview was seen working on Spark 4.3.0, in batches, micro-batches and
real-time mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sluice.errors import BadInputError, SluiceError
from sluice.spark.cluster.jars import JarSet
from sluice.spark.kafka.connection import Broker, read_properties

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
AVRO = "org.apache.spark:spark-avro_2.13"
COMMON = {"org.apache.kafka:kafka-clients": "3.9.2", "org.apache.commons:commons-pool2": "2.13.1"}
MIX = {CONNECTOR: "4.2.0", TOKENS: "4.1.0-preview1"}
NEWEST_AVRO = "4.1.1"
JAVA_NAMES = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "enable.ssl.certificate.verification": None,
}
"""Settings that Java's clients know by another name, or not at all."""
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def session_settings(*, kafka: bool = True, avro: bool = False) -> dict[str, str]:
    """What a session needs to read and write Kafka, and Avro."""
    folders = [*([connector_jars()] if kafka else []), *([avro_jars()] if avro else [])]
    jars = sorted(str(jar) for folder in folders for jar in folder.glob("*.jar"))
    return {"spark.jars": ",".join(jars)} if jars else {}


def connector_jars() -> Path:
    """The folder with the jars; the first call downloads some 10 MB."""
    import pyspark

    version = pyspark.__version__
    return _own_or(
        _jar_set(f"spark-kafka-{version}", "Kafka connector", {CONNECTOR: version, TOKENS: version, **COMMON}),
        _jar_set(f"spark-kafka-{MIX[CONNECTOR]}-mixed", "Kafka connector", {**MIX, **COMMON}),
    )


def avro_jars() -> Path:
    import pyspark

    return _own_or(
        _jar_set(f"spark-avro-{pyspark.__version__}", "Avro functions", {AVRO: pyspark.__version__}),
        _jar_set(f"spark-avro-{NEWEST_AVRO}", "Avro functions", {AVRO: NEWEST_AVRO}),
    )


def java_settings(broker: Broker) -> dict[str, str]:
    """Options of Spark's connector for this broker: the settings in its file, as Java's clients name them.

    Spark redacts those that hold secrets wherever it shows the options of a query.
    """
    given = dict(read_properties(broker.config))
    user, password = given.pop("sasl.username", None), given.pop("sasl.password", None)
    named = {JAVA_NAMES.get(name, name): value for name, value in given.items()}
    settings = {f"kafka.{name}": value for name, value in named.items() if name is not None}
    if named.get("ssl.truststore.location"):
        settings["kafka.ssl.truststore.type"] = "PEM"
    if user is not None:
        mechanism = named.get("sasl.mechanism", "PLAIN")
        module = LOGIN_MODULES.get(mechanism)
        if module is None:
            raise BadInputError(
                f"Spark's connector logs in with sasl.mechanisms {', '.join(LOGIN_MODULES)}, got {mechanism!r}"
            )
        settings["kafka.sasl.jaas.config"] = f"{module} required username={_quoted(user)} password={_quoted(password)};"
    return {"kafka.bootstrap.servers": broker.bootstrap, **settings}


def _quoted(text: str | None) -> str:
    escaped = (text or "").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _own_or(own: JarSet, newest: JarSet) -> Path:
    """The jars of this very version; where Maven Central has none, the newest there are."""
    for jar_set in (own, newest):
        if jar_set.folder.is_dir():
            return jar_set.folder
    try:
        return own.get()
    except BadInputError:
        raise
    except SluiceError:
        return newest.get()


def _jar_set(name: str, what: str, artifacts: Mapping[str, str]) -> JarSet:
    return JarSet(
        name=name,
        whose=f"Spark's {what}",
        needed_by=f"a session with Spark's {what}",
        artifacts=artifacts,
        transitive=False,
    )
