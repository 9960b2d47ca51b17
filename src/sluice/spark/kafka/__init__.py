"""Kafka: a broker for trying, Spark's connector, and topics of a broker as the edges of a pipeline.

* `broker`: one node of Kafka on this machine, for trying and for tests (`sluice kafka up`).
* `connector`: the jars with which the installed Spark reads and writes Kafka.
* `connection`: which broker, and the settings of its clients; secrets stay in their file.
* `clients`: Kafka's clients, used so that no thread of the library ever runs Python; `new_topic`: what needs one.
* `rows`: records as the messages of a topic (JSON) and back.
* `log`: a topic of a broker as the pipeline sees it; `commits`: what is committed, by its markers.
* `source`, `sink`: reading with any number of tasks, writing exactly once.
"""
