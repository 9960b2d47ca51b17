"""Private calls of Spark's backend for Kubernetes; see `sluice.spark.internals`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sluice.spark.internals import context_of, jvm_of, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def denied_pod_verbs(spark: SparkSession, verbs: Sequence[str]) -> list[str]:
    """Those of the verbs that Kubernetes does not allow this driver on pods of its namespace, as its API says.

    Seen on Spark 4.3.0.
    """
    context, jvm = context_of(spark), jvm_of(spark)
    with needs(spark, "client of Kubernetes"):
        backend = context.schedulerBackend()
        field = backend.getClass().getDeclaredField("kubernetesClient")
        field.setAccessible(True)
        client = field.get(backend)
        builder = jvm.io.fabric8.kubernetes.api.model.authorization.v1.SelfSubjectAccessReviewBuilder
        reviews = client.authorization().v1().selfSubjectAccessReview()
        namespace = context.conf().get("spark.kubernetes.namespace", "default")
        denied = []
        for verb in verbs:
            asked = builder().withNewSpec().withNewResourceAttributes().withNamespace(namespace)
            review = asked.withResource("pods").withVerb(verb).endResourceAttributes().endSpec().build()
            if not reviews.create(review).getStatus().getAllowed():
                denied.append(verb)
        return denied
