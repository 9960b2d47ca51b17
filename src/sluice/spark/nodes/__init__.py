"""Instances of different sizes on Spark: an instance is a node of that type, with one executor that takes all of it.

* `provider`: what starts and stops nodes, in four methods; `local` runs them on this machine, `command` asks a command
  line of yours.
* `pool`: keeps as many nodes of every type as are wanted, and measures how long they take to come.
* `shares`: which node serves which operator, and how much of its input each of them reads. Pure.
* `engine`: a pipeline on such nodes, as an engine of the control loop.
* `sampling`: one more node, of a size that is to be measured, on a share of the live load.
"""
