"""The guide's §5.1 query on the Paimon side, for many readings at once, in SQL that both readers know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from harness.errors import ReaderError
from harness.model import PartitionTotals
from harness.ports import TotalsRequest


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A request, and the table with the snapshot as the reader's engine writes it."""

    request: TotalsRequest
    table: str


def totals_query(branches: Sequence[Branch], *, text_type: str) -> str:
    """COUNT(DISTINCT key) and SUM(amount) per branch and partition, whole and inside the time window.

    A branch's number, from 0, is the first column. The rows are put together first and aggregated
    once: a Flink plan with an aggregate in each branch took half as much processor time again. Keys
    become text and amounts decimals, so that tables with other types can share a statement.
    `text_type` is how the engine calls an unbounded string. Sums come as text, since JSON would round
    them.
    """
    rows = "\n  UNION ALL\n".join(_rows(number, branch, text_type) for number, branch in enumerate(branches))
    return (
        f"SELECT branch, part, COUNT(*) AS row_count, COUNT(DISTINCT id) AS key_count,\n"
        f"  CAST(COALESCE(SUM(amount), 0) AS {text_type}) AS amount,\n"
        f"  COUNT(DISTINCT CASE WHEN inside THEN id END) AS window_keys,\n"
        f"  CAST(COALESCE(SUM(CASE WHEN inside THEN amount END), 0) AS {text_type}) AS window_amount\n"
        f"FROM (\n{rows}\n) AS found GROUP BY branch, part"
    )


def _rows(number: int, branch: Branch, text_type: str) -> str:
    contract, window = branch.request.table, branch.request.window
    start = window.start.isoformat(sep=" ", timespec="milliseconds")
    end = window.end.isoformat(sep=" ", timespec="milliseconds")
    return (
        f"  SELECT {number} AS branch, {contract.partition} AS part,"
        f" CAST({contract.source_key} AS {text_type}) AS id,"
        f" CAST({contract.amount} AS DECIMAL(38, 2)) AS amount,\n"
        f"    {contract.time} BETWEEN TIMESTAMP '{start}' AND TIMESTAMP '{end}' AS inside\n"
        f"  FROM {branch.table}"
    )


def totals_from(rows: Iterable[tuple[object, ...]], branches: int) -> tuple[tuple[PartitionTotals, ...], ...]:
    """The query's rows as totals, one entry per branch in their order, each sorted by partition.

    An entry without totals is a branch of which nothing came: an empty table, or an answer that was
    lost. Raises ReaderError when a row is of no branch.
    """
    answers: list[list[PartitionTotals]] = [[] for _ in range(branches)]
    for branch, partition, row_count, keys, amount, window_keys, window_amount in rows:
        number = int(str(branch))
        if not 0 <= number < branches:
            raise ReaderError(f"a row is of branch {number}, and the statement has {branches}")
        answers[number].append(
            PartitionTotals(
                partition=str(partition),
                rows=int(str(row_count)),
                keys=int(str(keys)),
                amount=_two_places(amount),
                window_keys=int(str(window_keys)),
                window_amount=_two_places(window_amount),
            )
        )
    return tuple(tuple(sorted(totals, key=lambda total: total.partition)) for totals in answers)


def _two_places(amount: object) -> str:
    return str(Decimal(str(amount)).quantize(Decimal("0.01")))
