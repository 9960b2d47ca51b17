"""Orders above 100, from one topic of your broker to another, exactly once; messages are JSON objects.

sluice run examples/pipeline_kafka.py --engine spark --topics kafka://HOST:PORT --policy ds2 --root work
"""

from sluice import Pipeline

orders = Pipeline("orders")
orders.source("bought", "id BIGINT, amount DOUBLE", topic="orders")


@orders.operator
def large(bought):
    return bought.where("amount > 100")


orders.sink("out", large, topic="large-orders")
