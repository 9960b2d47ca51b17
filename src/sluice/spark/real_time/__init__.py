"""Real-time mode: a pipeline as one query that answers every record at once, between two topics of a broker.

Spark runs all stages of such a query at the same time for the length of a batch, which only says how often it commits.

* `plan`: which pipelines qualify, and the query that runs one.
* `stages`: its stages as operators, and which targets fit them. Pure.
* `query`: started, and ended where a batch ends.
* `metrics`: what its stages did, in the words of policies. Pure.
* `engine`: the loop's engine. Its operators are the stages.
"""
