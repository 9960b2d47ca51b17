"""Every task on the worker that the placement says.

A worker is an executor with as many slots as cores. Instance i of an operator is partition i of its source, and its
share of the operator's state partitions.

* `workers`, `assignment`: which executor every partition goes to. Pure.
* `cluster`: a session on a cluster, its workers, and whether they share the driver's files.
* `classes`: the Java in `java/`, compiled by Spark's own compiler: a source with places, a log of tasks.
* `placing`: holds the placement in force, keeps it while executors come and go.
* `tasks`: what ran where, and whether it was where it was planned.
"""
