"""Hadoop's jars, resolved once with Maven into a folder that all clusters share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from sluice.errors import BadInputError, SluiceError
from sluice.spark.cluster.cache import cache_folder, keep_once

HADOOP_VERSION = "3.5.0"
ARTIFACTS = {
    "org.apache.hadoop:hadoop-common": HADOOP_VERSION,
    "org.apache.hadoop:hadoop-yarn-client": HADOOP_VERSION,
    "org.apache.hadoop:hadoop-yarn-server-nodemanager": HADOOP_VERSION,
    "org.apache.hadoop:hadoop-yarn-server-resourcemanager": HADOOP_VERSION,
    # the daemons load its classes even where nobody uses it
    "org.apache.hadoop:hadoop-yarn-server-timelineservice": HADOOP_VERSION,
    "org.slf4j:slf4j-reload4j": "1.7.36",
}
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
TIMEOUT_S = 900.0
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sluice</groupId><artifactId>yarn</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


def hadoop_folder() -> Path:
    """Where the jars of a YARN are, or will be; the folder appears when all of them are in it."""
    return cache_folder() / f"hadoop-{HADOOP_VERSION}"


def hadoop_jars() -> Path:
    """The folder with the jars; the first call downloads some 90 MB."""
    return keep_once(hadoop_folder(), _resolve)


def _resolve(scratch: Path, jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BadInputError(
            f"a YARN cluster needs the jars of Hadoop {HADOOP_VERSION} in {hadoop_folder()}; "
            "install Maven (mvn) to get them, or put them there"
        )
    pom = scratch / "pom.xml"
    pom.write_text(_pom())
    command = [maven, "-q", "-B", "-f", str(pom), COPY_GOAL, f"-DoutputDirectory={jars}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SluiceError(f"Maven did not get Hadoop's jars within {TIMEOUT_S:g} s") from error
    if done.returncode:
        raise SluiceError(f"Maven did not get Hadoop's jars: {first_error(done.stdout + done.stderr)}")


def first_error(output: str) -> str:
    """Maven's first error names the reason; what follows is advice."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.partition("[ERROR]")[2].strip() for line in lines if line.startswith("[ERROR]")]
    return next(iter(errors or lines[-1:]), "it ended without a message")


def _pom() -> str:
    dependencies = [
        f"    <dependency><groupId>{name.partition(':')[0]}</groupId>"
        f"<artifactId>{name.partition(':')[2]}</artifactId><version>{version}</version></dependency>"
        for name, version in ARTIFACTS.items()
    ]
    return POM.format(dependencies="\n".join(dependencies))
