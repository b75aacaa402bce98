"""How long the oracles of prefixes and partitions take over a made-up run, Parquet files and all.

Per size: a ledger of so many operations on a tenth of as many keys in 30 partitions, and the deltas of 200
snapshots that stand at even distances in it. The first and the last one are fences.

python -m tests.bench.bench_snapshot_prefix [--operations 10000 100000 1000000] [--snapshots 200] [--lose]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from harness.ledger import OPERATION_SCHEMA, state_after
from harness.model import (
    Evidence,
    Fence,
    FenceMark,
    Reading,
    SnapshotRecord,
    TableHistory,
    TimeWindow,
)
from harness.oracles import partition_atomicity, snapshot_prefix
from harness.oracles.comparison import totals
from harness.oracles.exhibits import Exhibits
from harness.replay import CHANGE_COLUMNS
from harness.source.orders import CONTRACT as ORDERS
from harness.source.orders import ROW_SCHEMA as ROWS

# A key is inserted when it first comes up; one operation in fifty deletes it, and the next inserts it again.
# The marker of each fence is a key of its own.
OPERATIONS = """
    WITH drawn AS (
      SELECT o AS operation,
             CASE WHEN o IN (?, ?) THEN -o ELSE (hash(o) % greatest(1, ? // 10))::BIGINT END AS order_id,
             hash(o, 'delete') % 50 = 0 AS deletes
      FROM range(1, ? + 1) AS r(o)
    ), chained AS (
      SELECT *, coalesce(lag(deletes) OVER of_key, true) AS gone FROM drawn
      WINDOW of_key AS (PARTITION BY order_id ORDER BY operation)
    )
    SELECT operation, operation // 3 AS transaction, 1783332900000 + operation AS committed_at_ms,
           CASE WHEN gone THEN 'insert' WHEN deletes AND order_id >= 0 THEN 'delete' ELSE 'update' END
             AS kind,
           order_id, abs(order_id) % 1000 AS user_id,
           (operation % 100000 / 100.0)::DECIMAL(18, 2) AS order_amount,
           (operation % 5)::TINYINT AS order_status, TIMESTAMP '2026-07-05' AS create_time,
           TIMESTAMP '2026-07-05' + to_milliseconds(operation) AS update_time,
           '2026-07-' || lpad((abs(order_id) % 30 + 1)::VARCHAR, 2, '0') AS dt
    FROM chained ORDER BY operation
"""

# A snapshot's delta is the last operation of each key since the one before.
CHANGES = """
    SELECT (1 + (operation * ? - 1) // ?)::BIGINT AS snapshot_id, 'delta' AS part,
           CASE WHEN kind = 'delete' THEN '-D' ELSE '+U' END AS rowkind, operation AS sequence,
           order_id, user_id, order_amount, order_status, create_time, update_time, dt
    FROM ledger WHERE operation <> ?
    QUALIFY row_number() OVER (PARTITION BY snapshot_id, order_id ORDER BY operation DESC) = 1
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--snapshots", type=int, default=200)
    parser.add_argument("--lose", action="store_true", help="one row change of the snapshot in the middle")
    options = parser.parse_args()
    for operations in options.operations:
        with tempfile.TemporaryDirectory() as folder:
            lost = operations // 2 if options.lose else 0
            evidence = _evidence(Path(folder), operations=operations, snapshots=options.snapshots, lost=lost)
            exhibits, line = Exhibits(evidence), [f"{operations:>9,} operations"]
            for oracle in (snapshot_prefix, partition_atomicity):
                began = time.monotonic()
                result = oracle.judge(exhibits)
                took_s = time.monotonic() - began
                codes = ", ".join(finding.code for finding in result.findings)
                line.append(f"{oracle.NAME} {took_s:.1f} s ({result.verdict.value}{codes and ': '}{codes})")
        print(" · ".join(line))  # noqa: T201 - a script's answer


def _evidence(folder: Path, *, operations: int, snapshots: int, lost: int) -> Evidence:
    marks = (operations // snapshots, operations)
    with duckdb.connect() as database:
        ledger = database.sql(OPERATIONS, params=[*marks, operations, operations]).to_arrow_table()
        ledger = ledger.cast(pa.schema([*OPERATION_SCHEMA, *ROWS]))
        changes = database.sql(CHANGES, params=[snapshots, operations, lost]).to_arrow_table()
    pq.write_table(ledger, folder / ORDERS.ledger_file)
    pq.write_table(changes.cast(pa.schema([*CHANGE_COLUMNS, *ROWS])), folder / "changes.parquet")
    return Evidence(
        folder=str(folder),
        tables=(ORDERS,),
        oracles=(),
        expected_faults=0,
        expected_fences=2,
        fences=tuple(
            _fence(ledger, number, operation, snapshot, folder)
            for number, operation, snapshot in ((1, marks[0], 1), (2, marks[1], snapshots))
        ),
        faults=(),
        jobs=(),
        workload=None,
        snapshots=tuple(_record(number) for number in range(1, snapshots + 1)),
        histories=(
            TableHistory(
                table=ORDERS.name,
                changelog_producer="input",
                base_snapshot=1,
                whole=(1, *range(10, snapshots + 1, 10), snapshots),
                changes="changes.parquet",
            ),
        ),
    )


def _fence(ledger: pa.Table, number: int, operation: int, snapshot: int, folder: Path) -> Fence:
    state = state_after(ledger, operation, key=ORDERS.source_key)
    file = f"fence-{number}.parquet"
    pq.write_table(state, folder / file)
    window = TimeWindow(start=datetime(2026, 7, 5), end=datetime(2026, 7, 6))  # noqa: DTZ001 - as in the model
    return Fence(
        mark=FenceMark(
            table=ORDERS.name,
            number=number,
            operation=operation,
            partition="",
            key=-operation,
            committed_at_ms=0,
        ),
        baseline=number == 1,
        visible=True,
        visible_at_ms=1,
        snapshot_id=snapshot,
        snapshot_at_ms=1,
        window=window,
        source=Reading(reader="source", totals=totals(state, window, ORDERS)),
        sink=(),
        source_rows=file,
        sink_rows=file,
    )


def _record(number: int) -> SnapshotRecord:
    return SnapshotRecord(
        table=ORDERS.name,
        snapshot_id=number,
        kind="APPEND",
        commit_user="made up",
        commit_identifier=number,
        committed_at_ms=1783332900000 + 3_000 * number,
        total_records=0,
        delta_records=0,
        changelog_records=0,
    )


if __name__ == "__main__":
    main()
