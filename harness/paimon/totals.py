"""The guide's §5.1 query on the Paimon side, in SQL that both readers understand."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from harness.model import PartitionTotals, TableContract, TimeWindow


def totals_query(contract: TableContract, table: str, window: TimeWindow, *, text_type: str) -> str:
    """COUNT(DISTINCT key) and SUM(amount) per partition, whole and inside the time window.

    `table` may carry a snapshot; `text_type` is how the engine calls an unbounded string. Sums come
    as text, since JSON would round them.
    """
    inside = (
        f"{contract.time} BETWEEN TIMESTAMP '{window.start.isoformat(sep=' ', timespec='milliseconds')}' "
        f"AND TIMESTAMP '{window.end.isoformat(sep=' ', timespec='milliseconds')}'"
    )
    key, amount = contract.source_key, contract.amount
    return (
        f"SELECT {contract.partition}, COUNT(*) AS row_count, COUNT(DISTINCT {key}) AS key_count, "
        f"CAST(COALESCE(SUM({amount}), 0) AS {text_type}) AS amount, "
        f"COUNT(DISTINCT CASE WHEN {inside} THEN {key} END) AS window_keys, "
        f"CAST(COALESCE(SUM(CASE WHEN {inside} THEN {amount} END), 0) AS {text_type}) AS window_amount "
        f"FROM {table} GROUP BY {contract.partition}"
    )


def totals_from(rows: Iterable[tuple[object, ...]]) -> tuple[PartitionTotals, ...]:
    """The query's rows as totals, sorted by partition."""
    totals = [
        PartitionTotals(
            partition=str(partition),
            rows=int(str(row_count)),
            keys=int(str(keys)),
            amount=_two_places(amount),
            window_keys=int(str(window_keys)),
            window_amount=_two_places(window_amount),
        )
        for partition, row_count, keys, amount, window_keys, window_amount in rows
    ]
    return tuple(sorted(totals, key=lambda total: total.partition))


def _two_places(amount: object) -> str:
    return str(Decimal(str(amount)).quantize(Decimal("0.01")))
