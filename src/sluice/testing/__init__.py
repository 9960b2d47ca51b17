"""Checks for those who extend sluice, and the loads and jobs that its own tests and benchmarks share.

`policy_suite` and `engine_suite` hold what every policy and every engine must do: inherit the class in a test module
and override its fixture. `observations` and `steady_chain` make input for policies. `exactly_once`, `answers` and
`step_load` run real jobs on Spark while they are rescaled, killed or overloaded, and compare what came out with an
independent computation. Nothing else in sluice imports this package; the suites need pytest and hypothesis.
"""
