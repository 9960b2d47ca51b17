"""From what Spark reports to an observation: one definition of every metric, for pipelines and for `attach`.

`events` reads Spark's JSON, `window` puts whole batches together, `metrics` computes from them: all three are pure.
`probe` asks Spark for the stages.
"""
