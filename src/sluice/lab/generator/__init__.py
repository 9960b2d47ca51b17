"""Records for topics: made in blocks from a seed and their numbers, written at the rate of a workload.

`nexmark`, `words`, `ads` and `images` make records and write nothing; `schedule` says how many are due, `producer`
writes them, `process` runs a producer beside the program that needs it.
"""
