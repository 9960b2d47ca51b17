"""The private calls of Spark that placing tasks needs; see `sluice.spark.internals`."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.spark.internals import Json, context_of, jvm_of, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compile_java(spark: SparkSession, sources: Sequence[Path], probe: str, folder: Path) -> Path:
    """Make the driver find classes of ours, compiled with Spark's own compiler into a jar; needs no JDK.

    The jar in `folder` is named after the sources and the version of Spark: one that is there is used as it is. Does
    nothing if the class `probe` is found already. Seen on Spark 4.3.0.
    """
    jar = folder / f"{probe}-{_fingerprint(spark.version, sources)}.jar"
    with needs(spark, "Janino compiler or class loader that takes jars"):
        jvm = jvm_of(spark)
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        if loader.getResource(f"{probe.replace('.', '/')}.class") is None:
            if not jar.exists():
                _compile(spark, loader, sources, jar)
            loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    return jar


def _fingerprint(version: str, sources: Sequence[Path]) -> str:
    content = hashlib.sha256(version.encode())
    for source in sources:
        content.update(source.read_bytes())
    return content.hexdigest()[:16]


def _compile(spark: SparkSession, loader: Any, sources: Sequence[Path], jar: Path) -> None:
    """The jar appears when it is complete: other processes may look for it."""
    jvm = jvm_of(spark)
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        classes, made = Path(scratch) / "classes", Path(scratch) / "made.jar"
        classes.mkdir()
        compiler = jvm.org.codehaus.janino.Compiler()
        compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
        compiler.setDestinationDirectory(jvm.java.io.File(str(classes)), False)
        files = spark.sparkContext._gateway.new_array(jvm.java.io.File, len(sources))  # type: ignore[union-attr]
        for number, source in enumerate(sources):
            files[number] = jvm.java.io.File(str(source))
        compiler.compile(files)
        with zipfile.ZipFile(made, "w") as archive:
            for path in sorted(classes.rglob("*.class")):
                archive.write(path, path.relative_to(classes).as_posix())
        made.replace(jar)


class TaskLog:
    """Every finished task of the application's queries, from a listener of our own compiled classes.

    Seen on Spark 4.3.0.
    """

    def __init__(self, spark: SparkSession, class_name: str) -> None:
        with needs(spark, "listener of tasks"):
            loader = jvm_of(spark).java.lang.Thread.currentThread().getContextClassLoader()
            self._log: Any = loader.loadClass(class_name).getConstructors()[0].newInstance(None)
            self.context_of = context_of(spark)
            self.context_of.addSparkListener(self._log)

    def drain(self) -> Json:
        """What finished since the last call."""
        found: Json = json.loads(self._log.drain())
        return found

    def close(self) -> None:
        self.context_of.removeSparkListener(self._log)
