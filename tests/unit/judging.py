"""What tests of oracles share: asking one oracle, looking into its answer, and defects for rows."""

from __future__ import annotations

from typing import Any

from evidence_folders import Edit, Row, Rows

from harness import oracles
from harness.model import Evidence, Finding, OracleResult

KEYS: dict[str, Any] = {"orders": 9, "behavior-log": "log-09"}
"""A row of each table that is there at every fence, inside its window, and that nothing changes."""

EVERY_FENCE = [(table, number) for table in KEYS for number in (1, 2, 3)]
"""Every table at every fence of the clean run."""


def judged(evidence: Evidence, name: str) -> OracleResult:
    """One oracle's answer."""
    return next(result for result in oracles.judge(evidence, [name]) if result.oracle == name)


def judged_by_all(evidence: Evidence) -> dict[str, OracleResult]:
    """Every oracle's answer, by its name."""
    return {result.oracle: result for result in oracles.judge(evidence, oracles.ORACLES)}


def codes(result: OracleResult) -> set[str]:
    """The codes of all findings."""
    return {finding.code for finding in result.findings}


def finding(result: OracleResult, code: str) -> Finding:
    """The first finding with this code."""
    return next(item for item in result.findings if item.code == code)


def failed_checks(result: OracleResult) -> set[str]:
    """The names of the checks that did not hold."""
    return {check.name for check in result.checks if not check.held}


def key_of(row: Row) -> Any:
    """A row's key: both tables have it first."""
    return next(iter(row.values()))


def changed(key: Any, **values: Any) -> Edit:
    """The row `key` has other values."""
    return lambda rows: [row | values if key_of(row) == key else row for row in rows]


def without(*keys: Any) -> Edit:
    """Rows are lost."""
    return lambda rows: [row for row in rows if key_of(row) not in keys]


def added(key: Any, **values: Any) -> Edit:
    """A copy of the row `key`, with other values, is there too."""
    return lambda rows: [*rows, next(row for row in rows if key_of(row) == key) | values]


def swapped(column: str, one: Any, other: Any) -> Edit:
    """Two rows have each other's value of a column."""

    def edit(rows: Rows) -> Rows:
        value = {key_of(row): row[column] for row in rows}
        taken = {one: value[other], other: value[one]}
        return [row | {column: taken.get(key_of(row), row[column])} for row in rows]

    return edit


def empty(rows: Rows) -> Rows:
    """Nothing is there."""
    return []
