"""The oracle of partitions: those of a snapshot are as of one operation, and each one that is not is named.

In the run told here four days have a row each. Operations 6 to 9 and 11 to 14 change the days' rows in turn;
5, 10 and 15 are the markers of the fences, on the first day. Snapshots 2 to 6 are at 5, 7, 10, 12 and 15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import evidence_folders
import pytest
from evidence_folders import (
    DELETE,
    FIRST_DAY,
    INSERT,
    SECOND_DAY,
    UPDATE,
    Change,
    Rows,
    Story,
    log,
    order,
    spoiled,
    with_history,
)
from held_rows import at_operation, cuts_of, holding, spoiled_at, standing, without_delta
from judging import KEYS, added, changed, codes, finding, judged, swapped, without

from harness.model import Evidence, OracleResult, SnapshotGap, Verdict
from harness.oracles.fingerprints import Stretches
from harness.oracles.partition_atomicity import in_common
from harness.oracles.prefixes import most_agreed

EACH_TABLE = pytest.mark.parametrize("table", KEYS)

DAYS = (FIRST_DAY, SECOND_DAY, "2026-07-07", "2026-07-08")
THIRD_DAY, FOURTH_DAY = DAYS[2:]


def orders(folder: Path, *, first: tuple[Change, ...] = (), last: tuple[Change, ...] = ()) -> Evidence:
    """The run told above, with more operations in its first chapter or its last one."""

    def turn(kind: str, minute: int) -> list[Change]:
        return [
            Change(kind, order(key, cents=minute, dt=day, minute=minute + key))
            for key, day in enumerate(DAYS, start=1)
        ]

    story = Story(chapters=([*first, *turn(INSERT, 0)], turn(UPDATE, 10), [*turn(UPDATE, 20), *last]), cut=12)
    return evidence_folders.evidence(folder, {"orders": story})


def logs(folder: Path) -> Evidence:
    """A log to which rows of the four days were appended in turn."""

    def turn(number: int) -> list[Change]:
        return [
            Change(INSERT, log(f"log-{number}-{key}", dt=day, minute=10 * number + key))
            for key, day in enumerate(DAYS)
        ]

    story = Story(chapters=(turn(0), turn(1), turn(2)), cut=12)
    return evidence_folders.evidence(folder, {"orders": orders_story(), "behavior-log": story})


def orders_story() -> Story:
    return evidence_folders.STORIES["orders"]


def showing(
    clean: Evidence, snapshots: Mapping[int, Mapping[str, int]], *, table: str = "orders"
) -> Evidence:
    """A sink that at these snapshots shows some days as of another operation than the snapshot's."""
    at = cuts_of(clean, table)

    def mixed(number: int, days: Mapping[str, int]) -> Rows:
        return [
            row
            for day in DAYS
            for row in at_operation(clean, table, days.get(day, at[number]))
            if row["dt"] == day
        ]

    return holding(clean, table, {number: mixed(number, days) for number, days in snapshots.items()})


def partitions(evidence: Evidence) -> OracleResult:
    return judged(evidence, "partition_atomicity")


def stretches(*spans: tuple[int, int]) -> Stretches:
    return Stretches(starts=[start for start, _ in spans], ends=[end for _, end in spans])


def test_a_clean_run_of_both_tables_is_valid(evidence: Evidence) -> None:
    result = partitions(evidence)

    assert (Verdict.VALID, 20, set()) == (result.verdict, result.examined, codes(result))
    assert all(check.held for check in result.checks)
    assert [24, 22] == [int(check.actual.rsplit(" ", 1)[1]) for check in result.checks]


@pytest.mark.parametrize("told", [orders, logs])
def test_a_clean_run_of_four_partitions_is_valid(tmp_path: Path, told: Callable[[Path], Evidence]) -> None:
    result = partitions(told(tmp_path))

    assert (Verdict.VALID, set()) == (result.verdict, codes(result))


def test_a_partition_that_is_behind_is_invalid_and_named_although_it_caught_up(tmp_path: Path) -> None:
    result = partitions(showing(orders(tmp_path), {4: {THIRD_DAY: 5}}))

    torn = finding(result, "partitions-torn")
    assert (Verdict.INVALID, {"partitions-torn"}) == (result.verdict, codes(result))
    assert "orders, snapshot 4 (APPEND)" == torn.where
    assert (
        f"3 partitions after operation 10; {THIRD_DAY}: behind by 3 operations, as after operation 7"
        in torn.actual
    )
    assert torn.actual.endswith("snapshots 4")


def test_a_partition_that_is_ahead_is_invalid_and_named(tmp_path: Path) -> None:
    result = partitions(showing(orders(tmp_path), {3: {FOURTH_DAY: 14}}))

    torn = finding(result, "partitions-torn")
    assert Verdict.INVALID == result.verdict
    assert (
        f"3 partitions after operation 7; {FOURTH_DAY}: ahead by 7 operations, as after operation 14"
        in torn.actual
    )


def test_a_partition_that_the_sink_does_not_show_is_behind(tmp_path: Path) -> None:
    result = partitions(showing(orders(tmp_path), {4: {SECOND_DAY: 0}}))

    assert Verdict.INVALID == result.verdict
    assert (f"{SECOND_DAY}: behind by 9 operations, as after operation 1",) == finding(
        result, "partitions-torn"
    ).examples


def test_a_partition_behind_at_the_first_fence_is_invalid(tmp_path: Path) -> None:
    result = partitions(showing(orders(tmp_path), {2: {FIRST_DAY: 0}}))

    assert "orders, snapshot 2 (APPEND)" == finding(result, "partitions-torn").where


def test_every_torn_snapshot_is_counted(tmp_path: Path) -> None:
    result = partitions(showing(orders(tmp_path), {4: {THIRD_DAY: 5}, 5: {THIRD_DAY: 5}, 6: {THIRD_DAY: 5}}))

    torn = finding(result, "partitions-torn")
    assert torn.what.startswith("in 3 of the snapshots")
    assert torn.actual.endswith("snapshots 4, 5, 6")


@pytest.mark.parametrize(("snapshot", "day", "behind"), [(4, THIRD_DAY, 5), (5, SECOND_DAY, 5)])
def test_a_log_of_which_a_partition_is_behind_is_invalid(
    tmp_path: Path, snapshot: int, day: str, behind: int
) -> None:
    result = partitions(showing(logs(tmp_path), {snapshot: {day: behind}}, table="behavior-log"))

    torn = finding(result, "partitions-torn")
    assert (Verdict.INVALID, {"partitions-torn"}) == (result.verdict, codes(result))
    assert torn.examples[0].startswith(f"{day}: behind by")


def test_a_row_that_left_one_partition_and_did_not_reach_the_other_is_invalid(tmp_path: Path) -> None:
    moved = orders(tmp_path, last=(Change(UPDATE, order(1, cents=20, dt=SECOND_DAY, minute=40)),))

    lost = partitions(showing(moved, {6: {SECOND_DAY: 14}}))
    twice = partitions(showing(moved, {6: {FIRST_DAY: 14}}))

    assert {"partitions-torn"} == codes(lost) == codes(twice)
    assert Verdict.INVALID == lost.verdict == twice.verdict


@pytest.mark.parametrize(
    ("table", "defect"),
    [
        ("orders", without(9)),
        ("orders", swapped("order_amount", 9, 11)),
        ("orders", changed(9, order_status=5)),
        ("orders", added(9, order_id=99)),
        ("behavior-log", without("log-09")),
        ("behavior-log", added("log-09")),
        ("behavior-log", swapped("user_id", "log-09", "log-11")),
    ],
)
def test_a_partition_that_is_no_state_is_invalid_and_its_rows_are_shown(
    evidence: Evidence, table: str, defect: Any
) -> None:
    result = partitions(spoiled_at(evidence, table, {5: defect}))

    wrong = finding(result, "partition-no-state")
    key = f"{evidence.contract(table).source_key} "
    assert (Verdict.INVALID, {"partition-no-state"}) == (result.verdict, codes(result))
    assert f"{table}, snapshot 5 (APPEND)" == wrong.where
    assert f"{FIRST_DAY}: as after no operation" == wrong.examples[0]
    assert any(key in example for example in wrong.examples[1:])


@pytest.mark.parametrize(("table", "new"), [("orders", {"order_id": 99}), ("behavior-log", {"log_id": "x"})])
def test_a_partition_that_the_source_never_had_is_invalid(
    evidence: Evidence, table: str, new: dict[str, Any]
) -> None:
    result = partitions(spoiled_at(evidence, table, {4: added(KEYS[table], dt="1970-01-01", **new)}))

    foreign = finding(result, "partition-foreign")
    assert (Verdict.INVALID, {"partition-foreign"}) == (result.verdict, codes(result))
    assert "1970-01-01: 1 rows, of which the source had none" in foreign.examples


@pytest.mark.parametrize(("table", "back"), [("orders", 17), ("behavior-log", 14)])
def test_partitions_that_all_went_back_are_invalid(evidence: Evidence, table: str, back: int) -> None:
    result = partitions(standing(evidence, table, {5: back}))

    assert (Verdict.INVALID, {"went-back"}) == (result.verdict, codes(result))
    assert f"2 partitions after operation {back}" in finding(result, "went-back").actual


def test_a_partition_of_which_nothing_remains_may_be_empty(tmp_path: Path) -> None:
    gone = order(9, dt="2026-07-09")
    # It came and went between two snapshots, so that the sink never had it.
    unseen = orders(tmp_path, last=(Change(INSERT, gone), Change(DELETE, gone)))

    result = partitions(unseen)

    assert (Verdict.VALID, 25) == (result.verdict, result.examined)


def test_a_partition_that_was_emptied_may_be_empty_and_must_be(tmp_path: Path) -> None:
    emptied = orders(tmp_path, last=(Change(DELETE, order(4, cents=20, dt=FOURTH_DAY, minute=24)),))
    assert Verdict.VALID == partitions(emptied).verdict

    result = partitions(showing(emptied, {6: {FOURTH_DAY: 14}}))

    assert (Verdict.INVALID, {"partitions-torn"}) == (result.verdict, codes(result))
    assert finding(result, "partitions-torn").examples[0].startswith(f"{FOURTH_DAY}: behind by")


@EACH_TABLE
def test_snapshots_that_are_not_known_are_unknown(evidence: Evidence, table: str) -> None:
    gap = SnapshotGap(snapshot_id=5, error="expired")

    result = partitions(with_history(evidence, table, gaps=(gap,)))

    assert Verdict.UNKNOWN == result.verdict
    assert {"snapshots-unseen"} == codes(result)


@EACH_TABLE
def test_a_table_without_a_history_is_unknown(evidence: Evidence, table: str) -> None:
    histories = tuple(one for one in evidence.histories if one.table != table)

    result = partitions(replace(evidence, histories=histories))

    assert (Verdict.UNKNOWN, {"history-unread"}) == (result.verdict, codes(result))


def test_deltas_that_were_never_checked_against_the_table_are_unknown(evidence: Evidence) -> None:
    result = partitions(with_history(evidence, "orders", whole=(2,)))

    assert (Verdict.UNKNOWN, {"not-read-whole"}) == (result.verdict, codes(result))


@EACH_TABLE
def test_a_ledger_that_is_not_the_source_is_unknown(evidence: Evidence, table: str) -> None:
    foreign = spoiled(evidence, table, 3, source=without(KEYS[table]))

    result = partitions(spoiled_at(foreign, table, {5: without(KEYS[table])}))

    assert (Verdict.UNKNOWN, {"ledger-is-not-source"}) == (result.verdict, codes(result))


def test_a_delta_that_is_missing_without_a_word_is_not_valid(evidence: Evidence) -> None:
    result = partitions(without_delta(evidence, "orders", 4))

    assert Verdict.INVALID == result.verdict


def test_the_first_operation_in_common_is_not_before_the_one_before() -> None:
    days = {"a": stretches((1, 3), (6, 9)), "b": stretches((2, 7)), "c": stretches((0, 2), (7, 9))}

    assert [2, 2, 2, 7, None] == [in_common(days, first=first) for first in (0, 1, 2, 3, 8)]
    assert 4 == in_common({}, first=4)
    assert in_common({**days, "d": Stretches()}, first=0) is None


def test_the_operation_that_most_agree_on_is_the_last_of_several() -> None:
    days = {"a": stretches((1, 3), (6, 9)), "b": stretches((2, 7)), "c": stretches((12, 14))}

    assert [6, 6, 12, 20] == [most_agreed(days, first=first) for first in (0, 4, 10, 20)]
