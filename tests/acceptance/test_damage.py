"""Damage that is done behind the harness's back after each fault is found, in the fence that follows it."""

from __future__ import annotations

import pytest
from findings import codes, findings, why

from harness.model import RunResult, Verdict
from harness.pipeline import ComposePipeline
from harness.pytest_plugin import Accept

pytestmark = pytest.mark.docker

ORDERS, LOG = "dwd.dwd_order_detail", "dwd.dwd_behavior_log"


class Saboteur:
    """Damages the sink at each fence: a row is deleted, another is changed, a logged event comes twice."""

    def __init__(self) -> None:
        self.keys: dict[int, str] = {}

    def __call__(self, pipeline: ComposePipeline, fence: int) -> None:
        session = pipeline.sink_session()

        def any_of(table: str, key: str, but: str) -> tuple[object, object]:
            dt, found = session.execute(f"SELECT dt, {key} FROM {table} WHERE {but} LIMIT 1").rows[0]
            self.keys[fence] = str(found)
            return dt, found

        if fence == 2:  # after the kill
            dt, key = any_of(ORDERS, "order_id", "order_id > 0")
            session.execute(f"DELETE FROM {ORDERS} WHERE dt = '{dt}' AND order_id = {key}")
        if fence == 3:  # after the stop
            dt, key = any_of(ORDERS, "order_id", "order_id > 0")
            session.execute(
                f"UPDATE {ORDERS} SET order_amount = order_amount + 0.01 "
                f"WHERE dt = '{dt}' AND order_id = {key}"
            )
        if fence == 4:  # after the cut
            _, key = any_of(LOG, "log_id", "log_id LIKE 'l-%'")
            session.execute(f"INSERT INTO {LOG} SELECT * FROM {LOG} WHERE log_id = '{key}'")


@pytest.fixture(scope="module")
def damaged(accept: Accept) -> tuple[RunResult, dict[int, str]]:
    """One chapter with damage after each of its faults, and the keys that were damaged by fence."""
    saboteur = Saboteur()
    return accept("acceptance", before_reconcile=saboteur).result, saboteur.keys


def test_a_damaged_chapter_is_invalid_although_every_fault_bit(
    damaged: tuple[RunResult, dict[int, str]],
) -> None:
    result, _ = damaged

    assert [Verdict.INVALID, 1] == [result.verdict, result.exit_code], why(result)
    assert [True, True, True] == [proof.bit for proof in result.faults]
    assert [] == [f for f in findings(result, "reconciliation") if "fence 1" in f.where]


@pytest.mark.parametrize(
    ("fence", "table", "how"),
    [(2, "orders", "missing"), (3, "orders", "stale"), (4, "behavior-log", "repeated")],
    ids=["deleted after the kill", "changed after the stop", "duplicated after the cut"],
)
def test_the_damage_after_a_fault_is_named_by_table_fence_and_row(
    damaged: tuple[RunResult, dict[int, str]], fence: int, table: str, how: str
) -> None:
    result, keys = damaged

    rows = [
        f
        for f in findings(result, "reconciliation")
        if f.code == "rows-differ" and table in f.where and f"fence {fence}" in f.where
    ]
    assert 1 == len(rows), why(result)
    assert any(how in example and keys[fence] in example for example in rows[0].examples), rows[0].examples


def test_a_duplicate_is_named_with_the_snapshots_that_brought_it(
    damaged: tuple[RunResult, dict[int, str]],
) -> None:
    result, keys = damaged

    found = findings(result, "append_exactly_once")
    assert any(keys[4] in example for finding in found for example in finding.examples), why(result)
    assert "snapshot" in " ".join(example for finding in found for example in finding.examples)


def test_damage_is_still_seen_when_its_fence_is_travelled_to(
    damaged: tuple[RunResult, dict[int, str]],
) -> None:
    result, _ = damaged

    assert codes(findings(result, "time_travel")), why(result)
