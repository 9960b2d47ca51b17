"""Runs in Flink's own environment: takes jobs as lines of JSON, submits them to a cluster, says their ids.

A line has `settings` and `statements`, the last of which is the job.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    for line in sys.stdin:
        asked = json.loads(line)
        tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for name, value in asked["settings"].items():
            tables.get_config().set(name, value)
        for statement in asked["statements"]:
            result = tables.execute_sql(statement)
        print(json.dumps({"job": str(result.get_job_client().get_job_id())}), flush=True)


if __name__ == "__main__":
    main()
