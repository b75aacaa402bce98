"""The prefix oracle: every snapshot is the source after one operation, in order, and each defect is seen.

In the clean run the orders' snapshots 2 to 6 stand at operations 16, 17, 19, 21 and 24, those of the log at
13, 15, 17, 19 and 22; snapshots 2, 4 and 6 are fences, and 2 and 6 were read whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import evidence_folders
import factories
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evidence_folders import (
    FIRST_DAY,
    INSERT,
    SECOND_DAY,
    STORIES,
    UPDATE,
    Change,
    Edit,
    Story,
    fence_of,
    history_of,
    log,
    order,
    rewritten,
    spoiled,
    with_fence,
    with_history,
)
from factories import BEHAVIOR_LOG, ORDERS, TABLES
from held_rows import (
    at_operation,
    corrected,
    holding,
    reread,
    retyped,
    spoiled_at,
    standing,
    with_record,
    with_transaction,
    without_delta,
)
from judging import KEYS, added, changed, codes, empty, failed_checks, finding, judged, swapped, without

from harness.model import Evidence, OracleResult, SnapshotGap, Verdict
from harness.oracles.exhibits import Exhibits
from harness.oracles.prefixes import positions_of

EACH_TABLE = pytest.mark.parametrize("table", KEYS)

CLEAN: Mapping[str, list[int]] = {"orders": [16, 17, 19, 21, 24], "behavior-log": [13, 15, 17, 19, 22]}


def prefixes(evidence: Evidence) -> OracleResult:
    return judged(evidence, "snapshot_prefix")


def operations(evidence: Evidence, table: str = "orders") -> list[int]:
    return [position.operation for position in positions_of(Exhibits(evidence)) if position.table == table]


def gap(snapshot: int, error: str = "expired", *, files_missing: bool = False) -> SnapshotGap:
    return SnapshotGap(snapshot_id=snapshot, error=error, files_missing=files_missing)


@EACH_TABLE
def test_a_clean_run_is_valid_and_every_snapshot_has_its_position(evidence: Evidence, table: str) -> None:
    result = prefixes(evidence)

    assert (Verdict.VALID, 10, set()) == (result.verdict, result.examined, codes(result))
    assert all(check.held for check in result.checks)
    assert CLEAN[table] == operations(evidence, table)
    assert any(
        f"operations {CLEAN[table][0]} → {CLEAN[table][-1]}" in check.actual for check in result.checks
    )


def test_a_position_says_how_long_its_operation_waited_and_whether_the_snapshot_was_read_whole(
    evidence: Evidence,
) -> None:
    found = [position for position in positions_of(Exhibits(evidence)) if position.table == "orders"]
    records = [record for record in evidence.snapshots if record.table == "orders"][1:]
    committed = pq.read_table(Path(evidence.folder) / factories.ORDERS.ledger_file)["committed_at_ms"]

    assert [True, False, False, False, True] == [position.whole for position in found]
    assert [2, 3, 4, 5, 6] == [position.snapshot_id for position in found]
    assert [
        record.committed_at_ms - committed[operation - 1].as_py()
        for record, operation in zip(records, CLEAN["orders"], strict=True)
    ] == [position.lag_ms for position in found]


def test_a_snapshot_may_fall_inside_a_transaction_and_that_is_said(evidence: Evidence) -> None:
    inside = with_transaction(evidence, "orders", 18, 17)

    result = prefixes(inside)

    assert Verdict.VALID == result.verdict
    assert any("1 inside a transaction" in check.actual for check in result.checks)
    assert [3] == [
        position.snapshot_id for position in positions_of(Exhibits(inside)) if position.inside_transaction
    ]


@pytest.mark.parametrize(
    ("table", "defect"),
    [
        ("orders", without(9)),
        ("orders", added(9, order_id=99)),
        ("orders", added(9, dt=SECOND_DAY)),
        ("orders", changed(9, order_status=5)),
        ("orders", changed(9, order_status=None)),
        ("orders", swapped("order_amount", 9, 11)),
        ("orders", changed(14, order_amount=Decimal("13.99"))),
        ("orders", changed(6, order_amount=Decimal("6.00"), order_status=1)),
        ("orders", without(13)),
        ("behavior-log", without("log-09")),
        ("behavior-log", without("log-16")),
        ("behavior-log", added("log-09")),
        ("behavior-log", added("log-09", log_id="log-99")),
        ("behavior-log", swapped("user_id", "log-09", "log-11")),
    ],
    ids=[
        "an order lost",
        "an order of nobody",
        "an order in two partitions",
        "a stale status",
        "a value lost",
        "swapped amounts, the same sum",
        "a cent lost",
        "an update lost",
        "an insert lost that later ones followed",
        "a row lost",
        "the row before the last lost",
        "a row twice",
        "a row of nobody",
        "swapped users, the same sum",
    ],
)
def test_a_wrong_state_is_invalid_although_the_next_snapshot_healed_it(
    evidence: Evidence, table: str, defect: Edit
) -> None:
    healed = spoiled_at(evidence, table, {5: defect})

    result = prefixes(healed)

    bad = finding(result, "no-such-state")
    assert (Verdict.INVALID, {"no-such-state"}) == (result.verdict, codes(result))
    assert f"{table}, snapshot 5 (APPEND)" == bad.where
    assert bad.what.startswith("in 1 of 5 snapshots")
    assert f"first healed in snapshot 6, operation {CLEAN[table][-1]}" in bad.what
    assert bad.examples
    assert [*CLEAN[table][:3], -1, CLEAN[table][-1]] == operations(healed, table)


@EACH_TABLE
def test_a_row_lost_for_good_is_in_every_snapshot_since(evidence: Evidence, table: str) -> None:
    lost = without(KEYS[table])

    result = prefixes(spoiled_at(evidence, table, dict.fromkeys((3, 4, 5, 6), lost)))

    bad = finding(result, "no-such-state")
    assert Verdict.INVALID == result.verdict
    assert "in 4 of 5 snapshots the table never was a state of the source; never healed" == bad.what
    assert bad.actual.endswith("snapshots 3, 4, 5, 6")
    assert "1 keys missing, 0 extra, 0 with another row" in bad.actual
    assert bad.examples[0].startswith(f"missing: {evidence.contract(table).source_key} {KEYS[table]}")


def test_an_update_that_never_arrived_is_seen_once_what_followed_it_is_there(evidence: Evidence) -> None:
    # Without operation 17 snapshot 3 is still the state after 16: behind, but right.
    stale = changed(6, order_amount=Decimal("6.00"), order_status=1, update_time=evidence_folders.time(6))

    late = spoiled_at(evidence, "orders", dict.fromkeys((3, 4, 5, 6), stale))

    assert [16, 16, -1, -1, -1] == operations(late)
    assert "orders, snapshot 4 (APPEND)" == finding(prefixes(late), "no-such-state").where


def test_the_nearest_operation_is_that_which_explains_most(evidence: Evidence) -> None:
    result = prefixes(spoiled_at(evidence, "orders", {5: without(9)}))

    assert finding(result, "no-such-state").actual.startswith(
        "against operation 21, the nearest: 1 keys missing"
    )


@pytest.mark.parametrize(("table", "back"), [("orders", 17), ("behavior-log", 14)])
def test_a_table_that_went_back_is_invalid_and_it_is_said_to_where(
    evidence: Evidence, table: str, back: int
) -> None:
    rolled_back = standing(evidence, table, {5: back})

    result = prefixes(rolled_back)

    gone = finding(result, "went-back")
    assert (Verdict.INVALID, {"went-back"}) == (result.verdict, codes(result))
    assert f"after operation {back}; snapshots 5" == gone.actual
    assert "first healed in snapshot 6" in gone.what
    assert [*CLEAN[table][:3], back, CLEAN[table][-1]] == operations(rolled_back, table)


@EACH_TABLE
def test_a_table_that_is_suddenly_empty_went_back_to_before_the_first_operation(
    evidence: Evidence, table: str
) -> None:
    result = prefixes(spoiled_at(evidence, table, {5: empty}))

    assert Verdict.INVALID == result.verdict
    assert finding(result, "went-back").actual.startswith("after operation 0;")


@EACH_TABLE
def test_a_table_that_is_empty_at_its_first_fence_is_invalid(evidence: Evidence, table: str) -> None:
    result = prefixes(spoiled_at(evidence, table, {2: empty}))

    assert Verdict.INVALID == result.verdict
    assert {"not-at-fence", "reads-disagree"} == codes(result)


def recurring(folder: Path, cuts: Mapping[int, int]) -> Evidence:
    """Orders of which one goes to and fro: after 16, 18 and 20 all is the same, after 17 and 19 too."""
    there, back = order(6, cents=650, minute=30), order(6, cents=600, minute=6)
    to_and_fro = [Change(UPDATE, row) for row in (there, back, there, back)]
    chapters = (
        STORIES["orders"].chapters[0],
        to_and_fro,
        [Change(INSERT, order(14)), Change(INSERT, order(15))],
    )
    story = Story(chapters=chapters, cut=22)
    return standing(evidence_folders.evidence(folder, {"orders": story}), "orders", cuts)


def test_a_state_that_recurs_is_found_in_order(tmp_path: Path) -> None:
    # Snapshot 4 is the second fence's, so this is about positions alone.
    found = recurring(tmp_path, {3: 17, 4: 18, 5: 19})

    assert [16, 17, 18, 19, 24] == operations(found)


def test_a_recurring_state_that_stays_is_one_position(tmp_path: Path) -> None:
    found = recurring(tmp_path, {3: 20, 4: 21, 5: 21})

    assert (Verdict.VALID, [16, 16, 21, 21, 24]) == (prefixes(found).verdict, operations(found))


def test_a_state_that_recurs_no_more_went_back(tmp_path: Path) -> None:
    found = recurring(tmp_path, {3: 17, 4: 21, 5: 18})

    assert (Verdict.INVALID, {"went-back"}) == ((result := prefixes(found)).verdict, codes(result))
    assert [16, 17, 21, 20, 24] == operations(found)


@EACH_TABLE
@pytest.mark.parametrize("snapshot", [3, 5])
def test_a_snapshot_that_is_not_in_the_history_is_unknown(
    evidence: Evidence, table: str, snapshot: int
) -> None:
    records = tuple(
        record for record in evidence.snapshots if (record.table, record.snapshot_id) != (table, snapshot)
    )

    result = prefixes(replace(evidence, snapshots=records))

    unseen = finding(result, "snapshots-unseen")
    assert (Verdict.UNKNOWN, {"snapshots-unseen"}) == (result.verdict, codes(result))
    assert unseen.actual.startswith(f"not known: {snapshot}")
    assert f"snapshot {snapshot}: not in the history" in unseen.examples[0]


@EACH_TABLE
def test_a_history_that_ends_before_the_last_fence_is_unknown(evidence: Evidence, table: str) -> None:
    records = tuple(r for r in evidence.snapshots if r.table != table or r.snapshot_id < 6)

    result = prefixes(replace(evidence, snapshots=records))

    assert Verdict.UNKNOWN == result.verdict
    assert "not known: 6" == finding(result, "snapshots-unseen").actual


def test_a_change_of_a_snapshot_after_the_history_ends_is_unknown(evidence: Evidence) -> None:
    result = prefixes(corrected(evidence, "orders", 8, ("-D", order(9, cents=900, dt=FIRST_DAY, minute=9))))

    assert Verdict.UNKNOWN == result.verdict
    assert "not known: 7, 8" == finding(result, "snapshots-unseen").actual


@EACH_TABLE
def test_after_a_delta_that_is_not_known_nothing_is_until_the_table_was_read_whole(
    evidence: Evidence, table: str
) -> None:
    holes = with_history(without_delta(evidence, table, 4), table, gaps=(gap(4, "no such manifest"),))

    result = prefixes(reread(holes, table, 6))

    unseen = finding(result, "snapshots-unseen")
    assert (Verdict.UNKNOWN, {"snapshots-unseen", "unexplained-change"}) == (result.verdict, codes(result))
    assert ("not known: 4, 5", "snapshot 4: no such manifest") == (unseen.actual, unseen.examples[0])
    assert "deltas before it are not known" in finding(result, "unexplained-change").what
    assert [*CLEAN[table][:2], CLEAN[table][4]] == operations(holes, table)


@EACH_TABLE
def test_a_gap_at_a_snapshot_that_was_read_whole_hides_nothing(evidence: Evidence, table: str) -> None:
    whole = with_history(without_delta(evidence, table, 4), table, gaps=(gap(4),), whole=(2, 4, 6))

    result = prefixes(reread(whole, table, 4))

    assert (Verdict.UNKNOWN, {"unexplained-change"}) == (result.verdict, codes(result))
    assert CLEAN[table] == operations(whole, table)


@EACH_TABLE
def test_a_gap_does_not_excuse_a_wrong_state_elsewhere(evidence: Evidence, table: str) -> None:
    wrong = spoiled_at(evidence, table, {3: without(KEYS[table])})

    result = prefixes(with_history(wrong, table, gaps=(gap(5),)))

    assert (Verdict.INVALID, {"snapshots-unseen", "no-such-state"}) == (result.verdict, codes(result))


@EACH_TABLE
def test_a_snapshot_whose_files_are_gone_is_invalid(evidence: Evidence, table: str) -> None:
    gone = with_history(evidence, table, gaps=(gap(5, "file not found: data-1.parquet", files_missing=True),))

    result = prefixes(gone)

    assert Verdict.INVALID == result.verdict
    assert f"{table}, snapshot 5" == finding(result, "sink-files-missing").where


@EACH_TABLE
@pytest.mark.parametrize(
    "changes",
    [
        {"changes": "", "error": "no slot"},
        {"base_snapshot": 0, "whole": ()},
        {"whole": (6,)},
        {"base_snapshot": 9, "whole": (9,)},
    ],
    ids=["not read", "no base", "the base not read whole", "a base that is no snapshot"],
)
def test_a_history_without_a_beginning_is_unknown(
    evidence: Evidence, table: str, changes: dict[str, Any]
) -> None:
    unread = with_history(evidence, table, **changes)

    result = prefixes(unread)

    assert (Verdict.UNKNOWN, {"history-unread"}) == (result.verdict, codes(result))
    assert [] == operations(unread, table)


@EACH_TABLE
def test_a_table_without_a_history_is_unknown(evidence: Evidence, table: str) -> None:
    histories = tuple(one for one in evidence.histories if one.table != table)

    result = prefixes(replace(evidence, histories=histories))

    assert (Verdict.UNKNOWN, {"history-unread"}) == (result.verdict, codes(result))


@EACH_TABLE
def test_a_base_that_is_not_the_first_fence_is_unknown(evidence: Evidence, table: str) -> None:
    result = prefixes(with_history(evidence, table, base_snapshot=4, whole=(4, 6)))

    assert Verdict.UNKNOWN == result.verdict
    assert "base-elsewhere" in codes(result)


@EACH_TABLE
@pytest.mark.parametrize("kind", ["COMPACT", "OVERWRITE", "ANALYZE"])
def test_a_snapshot_that_is_no_append_must_have_been_read_whole(
    evidence: Evidence, table: str, kind: str
) -> None:
    compacted = with_record(evidence, table, 5, kind=kind)

    result = prefixes(compacted)
    read = prefixes(with_history(compacted, table, whole=(2, 5, 6)))

    assert (Verdict.UNKNOWN, {"not-read-whole"}) == (result.verdict, codes(result))
    assert (f"snapshot 5 ({kind})",) == finding(result, "not-read-whole").examples
    assert Verdict.VALID == read.verdict


@EACH_TABLE
def test_the_last_snapshot_must_have_been_read_whole(evidence: Evidence, table: str) -> None:
    result = prefixes(with_history(evidence, table, whole=(2,)))

    assert (Verdict.UNKNOWN, {"not-read-whole"}) == (result.verdict, codes(result))


@pytest.mark.parametrize(("whole", "verdict"), [(16, Verdict.VALID), (17, Verdict.UNKNOWN)])
def test_of_ten_appends_in_a_row_one_must_have_been_read_whole(
    evidence: Evidence, whole: int, verdict: Verdict
) -> None:
    last = next(r for r in evidence.snapshots if (r.table, r.snapshot_id) == ("orders", 6))
    more = tuple(replace(last, snapshot_id=number) for number in range(7, 21))
    longer = replace(evidence, snapshots=(*evidence.snapshots, *more))

    result = prefixes(with_history(longer, "orders", whole=(2, 6, whole, 20)))

    assert verdict == result.verdict
    assert {"not-read-whole"} & codes(result) == (set() if verdict is Verdict.VALID else {"not-read-whole"})


def test_snapshots_after_the_last_fence_must_still_be_all_that_was_committed(evidence: Evidence) -> None:
    last = next(r for r in evidence.snapshots if (r.table, r.snapshot_id) == ("orders", 6))
    compacted = replace(last, snapshot_id=7, kind="COMPACT")
    longer = with_history(
        replace(evidence, snapshots=(*evidence.snapshots, compacted)), "orders", whole=(2, 6, 7)
    )
    clean = prefixes(longer)

    damaged = prefixes(corrected(longer, "orders", 7, ("-D", order(9, cents=900, dt=FIRST_DAY, minute=9))))

    assert Verdict.VALID == clean.verdict
    assert (Verdict.INVALID, {"unexplained-change", "no-such-state"}) == (damaged.verdict, codes(damaged))
    assert "orders, snapshot 7 (COMPACT)" == finding(damaged, "no-such-state").where


def test_a_compaction_that_changed_rows_is_invalid_and_they_are_named(evidence: Evidence) -> None:
    compacted = with_history(with_record(evidence, "orders", 5, kind="COMPACT"), "orders", whole=(2, 5, 6))
    nine = order(9, cents=900, dt=FIRST_DAY, minute=9)

    result = prefixes(corrected(compacted, "orders", 5, ("-D", nine), ("+I", nine | {"order_status": 4})))

    change = finding(result, "unexplained-change")
    assert Verdict.INVALID == result.verdict
    assert {"unexplained-change", "no-such-state", "reads-disagree"} == codes(result)
    assert ("orders, snapshot 5 (COMPACT)", "2 rows differ") == (change.where, change.actual)
    assert ["+", "-"] == sorted(example[0] for example in change.examples)


@EACH_TABLE
def test_a_change_that_no_delta_shows_is_invalid_although_every_state_is_right(
    evidence: Evidence, table: str
) -> None:
    silent = reread(without_delta(evidence, table, 6), table, 6)

    result = prefixes(silent)

    assert (Verdict.INVALID, {"unexplained-change"}) == (result.verdict, codes(result))
    assert CLEAN[table] == operations(silent, table)


@EACH_TABLE
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_fence_at_which_other_rows_were_read_is_unknown(
    evidence: Evidence, table: str, number: int
) -> None:
    rewritten(evidence, fence_of(evidence, table, number).sink_rows, without(KEYS[table]))

    result = prefixes(evidence)

    assert (Verdict.UNKNOWN, {"reads-disagree"}) == (result.verdict, codes(result))
    assert "1 extra" in finding(result, "reads-disagree").actual
    assert f"{table}, fence {number}, snapshot {2 * number}" == finding(result, "reads-disagree").where


@EACH_TABLE
def test_rows_that_were_not_read_at_a_fence_are_unknown(evidence: Evidence, table: str) -> None:
    result = prefixes(with_fence(evidence, table, 2, sink_rows=""))

    assert (Verdict.UNKNOWN, {"rows-unread"}) == (result.verdict, codes(result))


@EACH_TABLE
def test_a_fence_whose_snapshot_is_behind_its_marker_is_invalid(evidence: Evidence, table: str) -> None:
    before = CLEAN[table][2] - 1
    behind = standing(evidence, table, {4: before})
    rewritten(behind, fence_of(behind, table, 2).sink_rows, lambda _: at_operation(behind, table, before))

    result = prefixes(behind)

    assert (Verdict.INVALID, {"not-at-fence"}) == (result.verdict, codes(result))
    assert f"after operation {before}" == finding(result, "not-at-fence").actual
    assert {f"{table}: at each fence it is the fence's operation, and what was read there"} == failed_checks(
        result
    )


def test_a_snapshot_that_is_ahead_of_its_fence_is_invalid(evidence: Evidence) -> None:
    ahead = standing(evidence, "orders", {4: 20})
    rewritten(ahead, fence_of(ahead, "orders", 2).sink_rows, lambda _: at_operation(ahead, "orders", 20))

    assert {"not-at-fence"} == codes(prefixes(ahead))


@EACH_TABLE
def test_a_source_that_went_on_after_the_last_fence_is_unknown(evidence: Evidence, table: str) -> None:
    later = {"orders": order(99, minute=50), "behavior-log": log("log-99", minute=50)}[table]

    def one_more(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [*rows, rows[-1] | {"operation": len(rows) + 1, "kind": INSERT} | later]

    rewritten(evidence, evidence.contract(table).ledger_file, one_more)

    result = prefixes(evidence)

    assert (Verdict.UNKNOWN, {"not-at-the-end"}) == (result.verdict, codes(result))


@EACH_TABLE
def test_a_ledger_that_is_not_the_source_is_unknown_whatever_the_snapshots_hold(
    evidence: Evidence, table: str
) -> None:
    foreign = spoiled(evidence, table, 3, source=without(KEYS[table]))

    result = prefixes(spoiled_at(foreign, table, dict.fromkeys((3, 4, 5, 6), without(KEYS[table]))))

    assert (Verdict.UNKNOWN, {"ledger-is-not-source"}) == (result.verdict, codes(result))


def test_a_table_that_was_not_read_at_each_fence_is_unknown(evidence: Evidence) -> None:
    result = prefixes(replace(evidence, fences=evidence.fences[:-1]))

    assert Verdict.UNKNOWN == result.verdict
    assert "fence-unread" in codes(result)


def test_other_types_of_the_same_values_do_not_matter(evidence: Evidence) -> None:
    changes = history_of(evidence, "orders").changes
    stamps = dict.fromkeys(("create_time", "update_time"), pa.timestamp("us"))
    other = retyped(evidence, changes, order_status=pa.int32(), dt=pa.large_string(), **stamps)

    assert Verdict.VALID == prefixes(other).verdict


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"no parquet")])
@pytest.mark.parametrize("file", [ORDERS.ledger_file, "orders-changes.parquet"])
def test_evidence_that_is_damaged_is_unknown_and_has_no_positions(
    evidence: Evidence, damage: Any, file: str
) -> None:
    damage(Path(evidence.folder) / file)

    result = prefixes(evidence)

    assert (Verdict.UNKNOWN, {"oracle-crashed"}) == (result.verdict, codes(result))
    assert ([], CLEAN["behavior-log"]) == (operations(evidence), operations(evidence, BEHAVIOR_LOG.name))


def test_both_tables_have_positions_in_the_order_of_the_run() -> None:
    assert [table.name for table in TABLES] == list(CLEAN)


def test_rows_read_whole_at_the_base_are_where_everything_begins(evidence: Evidence) -> None:
    # The first deltas had expired: what the base held is known from its whole read alone.
    expired = reread(without_delta(evidence, "orders", 1, 2), "orders", 2)

    result = prefixes(expired)

    assert (Verdict.VALID, CLEAN["orders"]) == (result.verdict, operations(expired))


def test_a_wrong_base_is_no_state(evidence: Evidence) -> None:
    wrong = holding(evidence, "orders", {2: without(9)(at_operation(evidence, "orders", 16))})

    result = prefixes(wrong)

    assert Verdict.INVALID == result.verdict
    assert "orders, snapshot 2 (APPEND)" == finding(result, "no-such-state").where
