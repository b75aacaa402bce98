"""The source-truth oracle: a ledger that is not the source is never blamed on the sink."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import factories
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evidence_folders import Edit, Rows, fence_of, rewritten, spoiled, with_fence
from factories import BEHAVIOR_LOG, ORDERS, TABLES
from judging import EVERY_FENCE, KEYS, added, changed, codes, empty, finding, judged, swapped, without

from harness.model import Evidence, OracleResult, Reading, Verdict

OTHERS = ("reconciliation", "time_travel", "append_exactly_once")


@pytest.mark.parametrize(
    "defect",
    [
        without(9),
        added(9, order_id=99),
        changed(9, order_status=5),
        swapped("order_amount", 9, 11),
        empty,
    ],
    ids=["missing", "added", "status, with equal sums", "swapped, with equal sums", "empty"],
)
def test_a_ledger_that_is_not_the_source_is_unknown_and_never_blamed_on_the_sink(
    evidence: Evidence, defect: Edit
) -> None:
    foreign = spoiled(evidence, "orders", source=defect, sink=defect, travelled=defect)

    for name in ("source_truth", "reconciliation", "time_travel", "continuity"):
        result = judged(foreign, name)
        assert (Verdict.UNKNOWN, {"ledger-is-not-source"}) == (result.verdict, codes(result)), name


@pytest.mark.parametrize(("table", "number"), EVERY_FENCE)
def test_the_source_of_every_table_at_every_fence_is_looked_at(
    evidence: Evidence, table: str, number: int
) -> None:
    foreign = spoiled(evidence, table, number, source=without(KEYS[table]), sink=without(KEYS[table]))

    result = judged(foreign, "source_truth")

    assert Verdict.UNKNOWN == result.verdict
    assert f"{table}, fence {number}" == finding(result, "ledger-is-not-source").where
    assert Verdict.UNKNOWN == judged(foreign, "reconciliation").verdict


def test_a_log_that_somebody_else_writes_to_is_not_blamed_on_its_sink(evidence: Evidence) -> None:
    more = added("log-09", log_id="log-99")
    foreign = spoiled(evidence, "behavior-log", source=more, sink=more, travelled=more)

    assert {Verdict.UNKNOWN} == {judged(foreign, name).verdict for name in OTHERS}


def test_a_source_whose_own_sums_are_not_its_rows_is_unknown(evidence: Evidence) -> None:
    source = fence_of(evidence, "orders", 3).source
    cut = with_fence(evidence, "orders", 3, source=replace(source, totals=source.totals[:-1]))

    assert {Verdict.UNKNOWN} == {judged(cut, name).verdict for name in ("source_truth", "reconciliation")}


def test_a_source_that_was_not_read_is_unknown(evidence: Evidence) -> None:
    failed = Reading(reader="mysql", error="gone away")
    unread = with_fence(evidence, "orders", 3, source=failed, source_rows="")

    result, reconciled = judged(unread, "source_truth"), judged(unread, "reconciliation")

    assert {"source-unread"} == codes(result)
    assert [Verdict.UNKNOWN] * 2 == [result.verdict, reconciled.verdict]
    assert "gone away" in finding(reconciled, "ledger-is-not-source").what


@pytest.mark.parametrize(
    "changes", [{"unresolved": (41,)}, {"error": "transaction 41 is not known"}], ids=["unresolved", "error"]
)
def test_a_workload_that_does_not_know_what_it_committed_is_unknown(
    evidence: Evidence, changes: dict[str, Any]
) -> None:
    result = judged(replace(evidence, workload=replace(factories.WORKLOAD, **changes)), "source_truth")

    assert Verdict.UNKNOWN == result.verdict
    assert {"workload-broken"} == codes(result)
    assert "41" in finding(result, "workload-broken").actual


def logged(evidence: Evidence, edit: Edit, table: str = "orders") -> OracleResult:
    """What the oracle says when a table's binlog has other operations."""
    (file,) = (binlog.operations for binlog in evidence.binlogs if binlog.table == table)
    rewritten(evidence, file, edit)
    return judged(evidence, "source_truth")


def foreign_and_undone(rows: Rows) -> Rows:
    """Somebody else inserted a row and deleted it again, before the first fence."""
    other = rows[0] | {"order_id": 500}
    return [*rows[:4], other, other | {"kind": "delete"}, *rows[4:]]


@pytest.mark.parametrize(
    ("defect", "operation"),
    [
        (foreign_and_undone, 5),
        (lambda rows: [*rows[:3], *rows[4:]], 4),
        (lambda rows: [rows[1], rows[0], *rows[2:]], 1),
        (lambda rows: [*rows[:6], rows[6] | {"user_id": 8}, *rows[7:]], 7),
        (lambda rows: [*rows[:6], rows[6] | {"user_id": None}, *rows[7:]], 7),
        (lambda rows: [*rows[:-1], rows[-1] | {"kind": "update"}], 24),
        (lambda rows: [*rows, rows[0]], 25),
        (lambda rows: rows[:-1], 24),
        (empty, 1),
    ],
    ids=[
        "foreign and undone",
        "one not logged",
        "another order",
        "another value",
        "no value",
        "another kind",
        "more behind",
        "the last not logged",
        "nothing",
    ],
)
def test_a_ledger_that_is_not_the_binlog_is_unknown_and_the_first_difference_named(
    evidence: Evidence, defect: Edit, operation: int
) -> None:
    result = logged(evidence, defect)

    assert (Verdict.UNKNOWN, {"ledger-is-not-binlog"}) == (result.verdict, codes(result))
    found = finding(result, "ledger-is-not-binlog")
    assert f"orders, operation {operation}" == found.where
    assert found.expected.startswith("24 operations as in the ledger; here ")


def test_both_sides_of_a_difference_are_shown(evidence: Evidence) -> None:
    found = finding(logged(evidence, foreign_and_undone), "ledger-is-not-binlog")

    assert "insert {'order_id': 5" in found.expected
    assert "26 operations (+2); here insert {'order_id': 500" in found.actual


def test_the_binlog_of_every_table_is_compared(evidence: Evidence) -> None:
    result = logged(evidence, lambda rows: [*rows, rows[-1] | {"log_id": "log-99"}], BEHAVIOR_LOG.name)

    found = finding(result, "ledger-is-not-binlog")
    assert (Verdict.UNKNOWN, "behavior-log, operation 23") == (result.verdict, found.where)
    assert found.expected.endswith("here none")


def test_nulls_on_both_sides_are_equal(evidence: Evidence) -> None:
    def nameless(rows: Rows) -> Rows:
        return [row | {"user_id": None} for row in rows]

    for file in (ORDERS.ledger_file, evidence.binlogs[0].operations):
        rewritten(evidence, file, nameless)

    result = logged(evidence, lambda rows: [*rows[:-1], rows[-1] | {"kind": "update"}])

    assert "orders, operation 24" == finding(result, "ledger-is-not-binlog").where


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"operations": "", "error": "its first files are gone"}, "its first files are gone"),
        (None, "nothing"),
    ],
    ids=["error", "none kept"],
)
def test_a_binlog_that_was_not_read_is_unknown(
    evidence: Evidence, table: Any, changes: dict[str, Any] | None, why: str
) -> None:
    others = tuple(binlog for binlog in evidence.binlogs if binlog.table != table.name)
    (own,) = (binlog for binlog in evidence.binlogs if binlog.table == table.name)
    kept = others if changes is None else (*others, replace(own, **changes))

    result = judged(replace(evidence, binlogs=kept), "source_truth")

    assert (Verdict.UNKNOWN, {"binlog-unread"}) == (result.verdict, codes(result))
    found = finding(result, "binlog-unread")
    assert (table.name, True) == (found.where, why in found.actual)


def test_a_binlog_says_nothing_of_how_many_source_rows_were_looked_at(evidence: Evidence) -> None:
    without_fences = replace(evidence, fences=(), expected_fences=0)

    result = judged(without_fences, "source_truth")

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)


def test_the_types_of_a_binlog_are_not_part_of_the_comparison(evidence: Evidence) -> None:
    path = Path(evidence.folder) / evidence.binlogs[0].operations
    rows = pq.read_table(path)
    kind = rows.schema.get_field_index("order_status")
    pq.write_table(rows.set_column(kind, "order_status", rows["order_status"].cast(pa.int64())), path)

    assert Verdict.VALID == judged(evidence, "source_truth").verdict
