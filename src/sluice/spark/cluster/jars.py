"""Jars that are not part of pyspark, resolved once with Maven into a folder that all clusters share."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sluice.errors import BadInputError, SluiceError
from sluice.spark.cluster.cache import cache_folder, keep_once

HADOOP_VERSION = "3.5.0"
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
TIMEOUT_S = 900.0
EVERYTHING = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sluice</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


@dataclass(frozen=True, kw_only=True)
class JarSet:
    """Jars that belong together. `whose` and `needed_by` are for people."""

    name: str
    whose: str
    needed_by: str
    artifacts: Mapping[str, str]
    """`group:artifact` -> version."""
    transitive: bool = True
    """With what the artifacts need in turn; otherwise just they."""

    @property
    def folder(self) -> Path:
        """Where the jars are, or will be; the folder appears when all of them are in it."""
        return cache_folder() / self.name

    def get(self) -> Path:
        """The folder with the jars; the first call downloads them."""
        return keep_once(self.folder, partial(_resolve, self))


HADOOP = JarSet(
    name=f"hadoop-{HADOOP_VERSION}",
    whose=f"Hadoop {HADOOP_VERSION}",
    needed_by="a YARN cluster",
    artifacts={
        "org.apache.hadoop:hadoop-common": HADOOP_VERSION,
        "org.apache.hadoop:hadoop-yarn-client": HADOOP_VERSION,
        "org.apache.hadoop:hadoop-yarn-server-nodemanager": HADOOP_VERSION,
        "org.apache.hadoop:hadoop-yarn-server-resourcemanager": HADOOP_VERSION,
        # the daemons load its classes even where nobody uses it
        "org.apache.hadoop:hadoop-yarn-server-timelineservice": HADOOP_VERSION,
        "org.slf4j:slf4j-reload4j": "1.7.36",
    },
)


def _resolve(jar_set: JarSet, scratch: Path, jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BadInputError(
            f"{jar_set.needed_by} needs the jars of {jar_set.whose} in {jar_set.folder}; "
            "install Maven (mvn) to get them, or put them there"
        )
    pom = scratch / "pom.xml"
    pom.write_text(_pom(jar_set))
    command = [maven, "-q", "-B", "-f", str(pom), COPY_GOAL, f"-DoutputDirectory={jars}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SluiceError(f"Maven did not get the jars of {jar_set.whose} within {TIMEOUT_S:g} s") from error
    if done.returncode:
        reason = first_error(done.stdout + done.stderr)
        raise SluiceError(f"Maven did not get the jars of {jar_set.whose}: {reason}")


def first_error(output: str) -> str:
    """Maven's first error names the reason; what follows is advice."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.partition("[ERROR]")[2].strip() for line in lines if line.startswith("[ERROR]")]
    return next(iter(errors or lines[-1:]), "it ended without a message")


def _pom(jar_set: JarSet) -> str:
    alone = "" if jar_set.transitive else f"<exclusions>{EVERYTHING}</exclusions>"
    dependencies = [
        f"    <dependency><groupId>{name.partition(':')[0]}</groupId>"
        f"<artifactId>{name.partition(':')[2]}</artifactId><version>{version}</version>{alone}</dependency>"
        for name, version in jar_set.artifacts.items()
    ]
    return POM.format(dependencies="\n".join(dependencies))
