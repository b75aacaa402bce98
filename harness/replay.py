"""A table's content at each of its snapshots, put together from the snapshots' deltas. Pure.

A primary-key table's delta says what became of a key: a later row of the key takes the place of the one
before it. An append-only table's delta is rows, and no more. Beside deltas there are corrections: what a
snapshot that was read whole holds beyond its deltas, or lacks, row by row.
Source: Paimon 1.3 docs, "Snapshots" and "Primary Key Table / Overview".
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from harness.model import TableContract

DELTA, CORRECTION = "delta", "correction"

CHANGE_COLUMNS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("part", pa.string()),
        ("rowkind", pa.string()),
        ("sequence", pa.int64()),
    ]
)
"""What stands before the table's columns in a file of changes. `part` is DELTA or CORRECTION; `rowkind` is
Flink's, +I and +U for a row that is there then, -U and -D for one that is not; `sequence` orders a key's
rows of one delta, and is 0 where the table has no key."""

CHANGELOG_COLUMNS = pa.schema(
    [("snapshot_id", pa.int64()), ("rowkind", pa.string()), ("sequence", pa.int64())]
)
"""What stands before the table's columns in a file of a changelog."""


def signed_rows(contract: TableContract, *, changes: str = "changes") -> str:
    """SQL (DuckDB) for what each snapshot added and took away: snapshot_id, sign (1 or -1), columns.

    `changes` names a relation with CHANGE_COLUMNS and the table's. The signs of a row, summed until a
    snapshot, are how often the snapshot holds that row.
    """
    columns = ", ".join(f'"{name}"' for name in contract.columns)
    if contract.append_only:
        return (
            f"SELECT snapshot_id, CASE WHEN rowkind LIKE '+%' THEN 1 ELSE -1 END AS sign, {columns} "  # noqa: S608 - names are ours
            f"FROM {changes}"
        )
    packed = ", ".join(f'"{name}" := "{name}"' for name in contract.columns)
    earlier = ", ".join(f'before."{name}" AS "{name}"' for name in contract.columns)
    return f"""
        WITH events AS (
          SELECT snapshot_id, {columns}, rowkind LIKE '+%' AS lives, part = '{CORRECTION}' AS corrected,
                 lag(CASE WHEN rowkind LIKE '+%' THEN struct_pack({packed}) END) OVER of_key AS before
          FROM {changes}
          WINDOW of_key AS (
            PARTITION BY "{contract.partition}", "{contract.source_key}"
            ORDER BY snapshot_id, part = '{CORRECTION}', part = '{CORRECTION}' AND rowkind LIKE '+%', sequence
          )
        )
        SELECT snapshot_id, 1 AS sign, {columns} FROM events WHERE lives
        UNION ALL SELECT snapshot_id, -1, {columns} FROM events WHERE corrected AND NOT lives
        UNION ALL SELECT snapshot_id, -1, {earlier} FROM events WHERE NOT corrected AND before IS NOT NULL
    """  # noqa: S608 - as above


def rows_at(changes: pa.Table, snapshot_id: int, contract: TableContract) -> pa.Table:
    """The rows of a snapshot as its deltas and corrections up to it say, in no order.

    Of the deltas before the first whole read, what went before them is not known: ask from there on.
    """
    columns = ", ".join(f'"{name}"' for name in contract.columns)
    with duckdb.connect(":default:").cursor() as database:  # a database of its own takes 20 ms
        database.register("all_changes", changes)
        found: pa.Table = database.sql(
            f"""
            WITH changes AS (SELECT * FROM all_changes WHERE snapshot_id <= ?),
            signed AS ({signed_rows(contract)}),
            held AS (SELECT {columns}, sum(sign)::BIGINT AS times FROM signed GROUP BY ALL HAVING times > 0)
            SELECT {columns} FROM held, range(times)
            """,  # noqa: S608 - as above
            params=[snapshot_id],
        ).to_arrow_table()
    return found.cast(_row_schema(changes, contract))


def corrections(changes: pa.Table, whole: pa.Table, snapshot_id: int, contract: TableContract) -> pa.Table:
    """What a snapshot read whole holds beyond the changes up to it (+I), and lacks of them (-D).

    Rows of the result have CHANGE_COLUMNS and the table's, and belong behind `changes`: with them, `rows_at`
    gives exactly `whole`. None when deltas explain the snapshot.
    """
    columns = ", ".join(f'"{name}"' for name in contract.columns)
    replayed = rows_at(changes, snapshot_id, contract)
    with duckdb.connect(":default:").cursor() as database:
        database.register("replayed", replayed)
        database.register("whole_rows", whole.select(list(contract.columns)).cast(replayed.schema))
        found: pa.Table = database.sql(
            f"""
            SELECT ?::BIGINT AS snapshot_id, '{CORRECTION}' AS part, rowkind, 0::BIGINT AS sequence, {columns}
            FROM (
              SELECT '-D' AS rowkind, * FROM
                (SELECT {columns} FROM replayed EXCEPT ALL SELECT {columns} FROM whole_rows)
              UNION ALL SELECT '+I', * FROM
                (SELECT {columns} FROM whole_rows EXCEPT ALL SELECT {columns} FROM replayed)
            )
            """,  # noqa: S608 - as above
            params=[snapshot_id],
        ).to_arrow_table()
    return found.cast(changes.schema)


def _row_schema(changes: pa.Table, contract: TableContract) -> pa.Schema:
    return pa.schema([changes.schema.field(name) for name in contract.columns])
