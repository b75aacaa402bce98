"""The guide's append-only table (§3.3, second template) fed by MySQL CDC, as a PyFlink Table API program.

Beside it the same job keeps sums of the log in a table of its own, which the guide does not have: a row
that is applied twice is one more row in the log and a wrong sum there.

Submit it with `flink run -py`; the settings of §3.1 come as -D options from the profile. What it needs to
know comes from the environment, so that no password stands in a command line: JOB_ and the names below.
"""

import os
import sys

from pyflink.table import EnvironmentSettings, TableEnvironment

NEEDED = (
    "WAREHOUSE",
    "S3_ENDPOINT",
    "S3_ACCESS_KEY",
    "S3_SECRET_KEY",
    "CATALOG_OPTIONS",  # further WITH options of the catalog, each after a comma
    "TABLE_OPTIONS",  # the WITH options of the sink, as SQL writes them
    "SOURCE_HOST",
    "SOURCE_PORT",
    "SOURCE_USER",
    "SOURCE_PASSWORD",
    "SERVER_ID_RANGE",  # one range per job: a shared id makes MySQL cut the other off
    "CHUNK_SIZE",
)

CATALOG = """
CREATE CATALOG paimon WITH (
    'type' = 'paimon',
    'warehouse' = '{WAREHOUSE}',
    's3.endpoint' = '{S3_ENDPOINT}',
    's3.access-key' = '{S3_ACCESS_KEY}',
    's3.secret-key' = '{S3_SECRET_KEY}',
    's3.path.style.access' = 'true'{CATALOG_OPTIONS}
)
"""

SINK = """
CREATE TABLE IF NOT EXISTS paimon.dwd.dwd_behavior_log (
    log_id STRING,
    user_id BIGINT,
    event_type STRING,
    event_time TIMESTAMP(3),
    dt STRING
) PARTITIONED BY (dt)
WITH (
    {TABLE_OPTIONS}
)
"""

# Its options stand here and not in the profile, since the guide has no such table. One bucket, so that a
# compaction is soon due. Every snapshot is read at the end of a run, so none may expire before; how many
# are retained has no limit unless one is set.
TOTALS = """
CREATE TABLE IF NOT EXISTS paimon.dwd.dwd_behavior_totals (
    dt STRING,
    event_type STRING,
    events BIGINT,
    users BIGINT,
    PRIMARY KEY (dt, event_type) NOT ENFORCED
) WITH (
    'bucket' = '1',
    'merge-engine' = 'aggregation',
    'fields.events.aggregate-function' = 'sum',
    'fields.users.aggregate-function' = 'sum',
    'file.format' = 'parquet',
    'snapshot.time-retained' = '48h'
)
"""

SOURCE = """
CREATE TEMPORARY TABLE behavior_log (
    log_id STRING NOT NULL,
    user_id BIGINT,
    event_type STRING,
    event_time TIMESTAMP(3),
    dt STRING,
    PRIMARY KEY (log_id) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = '{SOURCE_HOST}',
    'port' = '{SOURCE_PORT}',
    'username' = '{SOURCE_USER}',
    'password' = '{SOURCE_PASSWORD}',
    'database-name' = 'shop',
    'table-name' = 'behavior_log',
    'server-id' = '{SERVER_ID_RANGE}',
    'server-time-zone' = 'UTC',
    'scan.startup.mode' = 'initial',
    'scan.incremental.snapshot.chunk.size' = '{CHUNK_SIZE}'
)
"""

INSERT_TOTALS = """
INSERT INTO paimon.dwd.dwd_behavior_totals
SELECT dt, event_type, CAST(1 AS BIGINT), user_id FROM behavior_log
"""


def main() -> None:
    missing = [f"JOB_{name}" for name in NEEDED if f"JOB_{name}" not in os.environ]
    if missing:
        sys.exit(f"{__file__}: missing in the environment: {', '.join(missing)}")
    known = {name: os.environ[f"JOB_{name}"] for name in NEEDED}

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    # Each row is to be added to its sums as it is. Since the key of the totals is not the source's, the
    # planner would put an operator before them that keeps every row of a key in state and makes updates.
    tables.get_config().set("table.exec.sink.upsert-materialize", "NONE")
    tables.execute_sql(CATALOG.format(**known))
    tables.execute_sql("CREATE DATABASE IF NOT EXISTS paimon.dwd")
    tables.execute_sql(SINK.format(**known))
    tables.execute_sql(TOTALS)
    tables.execute_sql(SOURCE.format(**known))

    # A sink without a primary key takes whatever change the planner sees, and the source could bring
    # updates. They are not filtered: Paimon's append writer ends the job at the first -U or -D.
    both = tables.create_statement_set()
    both.add_insert("paimon.dwd.dwd_behavior_log", tables.from_path("behavior_log"))
    both.add_insert_sql(INSERT_TOTALS)
    both.execute()


if __name__ == "__main__":
    main()
