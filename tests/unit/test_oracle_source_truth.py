"""The source-truth oracle: a ledger that is not the source is never blamed on the sink."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import factories
import pytest
from evidence_folders import Edit, fence_of, spoiled, with_fence
from judging import EVERY_FENCE, KEYS, added, changed, codes, empty, finding, judged, swapped, without

from harness.model import Evidence, Reading, Verdict

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
