#!/bin/sh
# A PySpark job with attach on Kubernetes, the driver in a pod.
# Needs rbac.yaml in the namespace and an image made with the Dockerfile beside this file.
#   API_SERVER=https://host:6443 NAMESPACE=jobs IMAGE=registry/job:1 ./spark-submit.sh [arguments of the job]
set -eu
here=$(dirname "$0")
exec spark-submit \
  --master "k8s://${API_SERVER:?the URL of the API server}" \
  --deploy-mode cluster \
  --name counts \
  --conf spark.kubernetes.namespace="${NAMESPACE:-default}" \
  --conf spark.kubernetes.container.image="${IMAGE:?an image with Spark, sluice and the job}" \
  --conf spark.kubernetes.authenticate.driver.serviceAccountName=spark \
  --conf spark.kubernetes.executor.podTemplateFile="$here/executor-pod.yaml" \
  --conf spark.executor.instances=1 \
  --conf spark.executor.cores=1 \
  --conf spark.executor.memory=2g \
  --conf spark.decommission.enabled=true \
  --conf spark.storage.decommission.enabled=true \
  --conf spark.storage.decommission.replicationReattemptInterval=2s \
  --conf spark.sluice.minExecutors=1 \
  --conf spark.sluice.maxExecutors=8 \
  --conf spark.sluice.objective='latency<30s' \
  local:///opt/job/run.py /opt/job/job.py "$@"
