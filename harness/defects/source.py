"""A table's source as its ledger has it: to find operations that a defect can strike."""

from __future__ import annotations

import random
from typing import Any, TypeAlias

import duckdb

from harness.defects.files import read
from harness.errors import NoPlace
from harness.ledger import OPERATION_SCHEMA
from harness.model import Evidence, TableContract

Row: TypeAlias = dict[str, Any]
"""A row by its columns, in Arrow's Python values."""

QUIET = "next IS NULL"
"""Nothing happens to the row after this operation, so that no later change hides a defect."""

LIVES = f"kind <> 'delete' AND {QUIET}"
"""The operation left a row that stays as it is."""


class Source:
    """The ledger of one table."""

    def __init__(self, evidence: Evidence, contract: TableContract) -> None:
        self._contract = contract
        self._markers = [fence.mark.key for fence in evidence.fences_of(contract.name)]
        self.ledger = read(evidence, contract.ledger_file)

    def operations(self, condition: str, *, after: int = 0, until: int) -> list[int]:
        """The operations after one and until another that a condition holds for; none of a marker's.

        Beside the ledger's columns the condition may use `before` and `next`, the numbers of the same key's
        operations before and after, NULL for none; `held`, whether the key had a row before; and `moved`,
        whether the operation brought that row into another partition.
        """
        contract = self._contract
        with duckdb.connect(":default:").cursor() as database:
            database.register("ledger", self.ledger)
            found = database.execute(
                f"""
                WITH story AS (
                  SELECT *, lag(operation) OVER of_key AS before, lead(operation) OVER of_key AS next,
                         coalesce(lag(kind) OVER of_key <> 'delete', false) AS held,
                         "{contract.partition}" <> lag("{contract.partition}") OVER of_key AS moved
                  FROM ledger WINDOW of_key AS (PARTITION BY "{contract.source_key}" ORDER BY operation)
                )
                SELECT operation FROM story
                WHERE {condition} AND operation > ? AND operation <= ?
                  AND NOT list_contains(?, "{contract.source_key}") ORDER BY operation
                """,
                [after, until, self._markers],
            ).fetchall()
        return [number for (number,) in found]

    def pick(
        self, rng: random.Random, condition: str, *, after: int = 0, until: int, count: int = 1
    ) -> list[int]:
        """So many of these operations by chance, in order. Raises NoPlace when there are not as many."""
        found = self.operations(condition, after=after, until=until)
        if len(found) < count:
            raise NoPlace(
                f"{self._contract.name} has {len(found)} operations with {condition}, after operation "
                f"{after} and until {until}; {count} are needed"
            )
        return sorted(rng.sample(found, count))

    def row(self, operation: int) -> Row:
        """The row of an operation: after it, before it for a delete."""
        entry: Row = self.ledger.slice(operation - 1, 1).to_pylist()[0]
        return {name: value for name, value in entry.items() if name not in OPERATION_SCHEMA.names}

    def row_before(self, operation: int) -> Row:
        """The row that an operation changed or deleted."""
        key = self.row(operation)[self._contract.source_key]
        with duckdb.connect(":default:").cursor() as database:
            database.register("ledger", self.ledger)
            found = database.execute(
                "SELECT max(operation) FROM ledger "
                f'WHERE "{self._contract.source_key}" = ? AND operation < ?',
                [key, operation],
            ).fetchone()
        if not found or not found[0]:
            raise NoPlace(f"{self._contract.name} has no row before operation {operation}")
        return self.row(found[0])
