"""Oracle: every snapshot holds what the source held after some operation, and none goes back.

From the first fence on each snapshot is compared, not only those of fences: so a wrong state that heals
is seen too. States are compared by fingerprints of 128 bits. It can't see a state that no snapshot held;
nor, between two whole reads, a table that for a while was not what its deltas say; nor which of two equal
states of the source a snapshot stands at: it takes the first in order. A torn late commit (see late_commits)
is INVALID unless the scenario accepts it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from harness.model import NO_OPERATION, Fence, OracleResult, SnapshotPosition, Verdict
from harness.oracles import late_commits
from harness.oracles.comparison import MAX_EXAMPLES, Difference, difference, place
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.fingerprints import fingerprint, row_columns
from harness.oracles.histories import Seen, judge_corrections, named, require_history, require_source
from harness.oracles.judgement import Judgement, require_every_fence
from harness.oracles.positions import last_shown
from harness.oracles.prefixes import known_contents, most_agreed, positions
from harness.replay import rows_at

NAME = "snapshot_prefix"


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when every snapshot of every table from its first fence on is the ledger so far, in order."""
    judgement = Judgement(NAME, unit="snapshots")
    for table in exhibits.tables():
        found = require_history(judgement, table)
        if found is None:
            continue
        judge_corrections(judgement, table, found)
        if require_source(judgement, table, subject="snapshots"):
            _Prefixes(judgement, table, found, accepts=exhibits.evidence.accepts).judge()
    require_every_fence(judgement, exhibits.evidence, exhibits.evidence.tables)
    return judgement.result()


class _Prefixes:
    """One table's snapshots under judgement."""

    def __init__(
        self, judgement: Judgement, table: OpenTable, found: Seen, *, accepts: Sequence[str]
    ) -> None:
        self._judgement = judgement
        self._table = table
        self._found = found
        self._positions = positions(table)
        self._by_snapshot = {position.snapshot_id: position for position in self._positions}
        newest, self._floors = 0, dict[int, int]()
        for position in self._positions:
            self._floors[position.snapshot_id] = newest
            newest = max(newest, position.operation)
        self._torn = [one for one in self._positions if one.torn]
        self._torn_pass = late_commits.LIMIT in accepts
        self._nowhere = [one for one in self._positions if one.operation == NO_OPERATION and not one.torn]
        self._back = [
            one for one in self._positions if NO_OPERATION < one.operation < self._floors[one.snapshot_id]
        ]

    def judge(self) -> None:
        self._judgement.examined += len(self._positions)
        self._judgement.check(
            f"{self._table.name}: every snapshot is the source after one operation, in order",
            expected=f"snapshots {self._found.base} to {self._found.last}",
            actual=self._shown(),
            held=not (self._nowhere or self._back or self._found.unseen)
            and (self._torn_pass or not self._torn),
        )
        if self._torn:
            self._is_torn()
        if self._nowhere:
            self._is_no_state(self._nowhere[0])
        if self._back:
            self._went_back(self._back[0])
        at_fences = [self._at_fence(fence) for fence in self._table.fences]
        self._judgement.check(
            f"{self._table.name}: at each fence it is the fence's operation, and what was read there",
            expected=f"{len(at_fences)} fences",
            actual=f"{sum(at_fences)} fences",
            held=bool(at_fences) and all(at_fences),
        )
        self._at_the_end()

    def _shown(self) -> str:
        first, last = self._positions[0], self._positions[-1]
        waits, newest = [], first.operation
        for position in self._positions:
            if position.operation > newest:  # an operation shown again says nothing of a wait
                waits.append(position.lag_ms / 1000)
                newest = position.operation
        inside = sum(position.inside_transaction for position in self._positions)
        parts = [
            f"{len(self._positions)} snapshots, operations {_operation(first)} → {_operation(last)}",
            f"{inside} inside a transaction",
        ]
        if waits:
            parts.append(f"lag {statistics.median(waits):.1f} s median, {max(waits):.1f} s at most")
        if self._nowhere or self._back:
            parts.append(f"{len(self._nowhere)} after no operation, {len(self._back)} went back")
        if self._torn:
            parts.append(f"{len(self._torn)} torn")
        return "; ".join(parts)

    def _is_torn(self) -> None:
        completed = late_commits.completed_by(self._positions)
        records = {record.snapshot_id: record for record in self._table.snapshots}
        first = self._torn[0]
        self._judgement.find(
            Verdict.VALID if self._torn_pass else Verdict.INVALID,
            "torn-late-commit",
            "a part of a failed checkpoint was committed late with the next one, so for a moment readers saw "
            f"one writer's rows and not another's: {len(self._torn)} of {len(self._positions)} snapshots",
            where=f"{self._table.name}, snapshot {first.snapshot_id} ({first.kind})",
            expected="all that the source changed between two operations, or nothing of it",
            actual="a part, until another snapshot completed it",
            examples=tuple(
                f"snapshot {one.snapshot_id}, checkpoint {records[one.snapshot_id].commit_identifier}: "
                f"completed by snapshot {by.snapshot_id} {by.at_ms - one.at_ms} ms later"
                for one, by in ((one, completed[one.snapshot_id]) for one in self._torn[:MAX_EXAMPLES])
            ),
            todo=late_commits.TODO,
        )

    def _is_no_state(self, position: SnapshotPosition) -> None:
        nearest, differing = self._nearest(position)
        number = position.snapshot_id
        self._find_bad(
            "no-such-state",
            "the table never was a state of the source",
            self._nowhere,
            expected=f"the ledger after operation {self._floors[number]} or a later one",
            actual=f"against operation {nearest}, the nearest: {differing}",
            examples=differing.examples,
        )

    def _went_back(self, position: SnapshotPosition) -> None:
        self._find_bad(
            "went-back",
            "the table went back to an earlier state of the source",
            self._back,
            expected=f"the ledger after operation {self._floors[position.snapshot_id]} or a later one",
            actual=f"after operation {position.operation}",
        )

    def _find_bad(
        self,
        code: str,
        what: str,
        bad: Sequence[SnapshotPosition],
        *,
        expected: str,
        actual: str,
        examples: tuple[str, ...] = (),
    ) -> None:
        """Name the first of these snapshots, how many there are, and the first good one after it."""
        first = bad[0]
        wrong = {one.snapshot_id for one in (*self._nowhere, *self._back, *self._torn)}
        healed = next(
            (
                f"first healed in snapshot {one.snapshot_id}, operation {one.operation}"
                for one in self._positions
                if one.snapshot_id > first.snapshot_id and one.snapshot_id not in wrong
            ),
            "never healed",
        )
        self._judgement.find(
            Verdict.INVALID,
            code,
            f"in {len(bad)} of {len(self._positions)} snapshots {what}; {healed}",
            where=f"{self._table.name}, snapshot {first.snapshot_id} ({first.kind})",
            expected=expected,
            actual=f"{actual}; snapshots {named([one.snapshot_id for one in bad])}",
            examples=examples,
        )

    def _nearest(self, position: SnapshotPosition) -> tuple[int, Difference]:
        """The operation to show a wrong snapshot against: of three likely ones that which explains most."""
        number, ledger = position.snapshot_id, self._table.ledger
        rows, floor = self._rows(number), self._floors[number]
        partitions = known_contents(self._table, self._found)[number].partitions
        likely = {floor, most_agreed(partitions, first=floor), max(floor, last_shown(ledger, rows))}
        compared = [
            (operation, difference(self._table.state(operation), rows, self._table.contract))
            for operation in sorted(likely)
        ]
        return min(compared, key=lambda one: one[1].keys)

    def _rows(self, snapshot_id: int) -> pa.Table:
        return rows_at(self._table.changes, snapshot_id, self._table.contract)

    def _at_fence(self, fence: Fence) -> bool:
        """Whether a fence's snapshot stands where its marker was committed, and is what was read there."""
        position = self._by_snapshot.get(fence.snapshot_id)
        if position is None:
            return False  # unseen, which has its own finding
        find = partial(
            self._judgement.find, where=place(self._table.name, fence.mark.number, fence.snapshot_id)
        )
        stands = position.operation == fence.mark.operation
        if not stands and position not in (*self._nowhere, *self._back, *self._torn):
            find(
                Verdict.INVALID,
                "not-at-fence",
                "the snapshot of a fence is not the source as it stood there",
                expected=f"after operation {fence.mark.operation}",
                actual=f"after operation {position.operation}",
            )
        if not fence.sink_rows:
            find(Verdict.UNKNOWN, "rows-unread", "the sink's rows were not read at a fence")
            return False
        kept = self._table.rows(fence.sink_rows)
        replayed = known_contents(self._table, self._found)[fence.snapshot_id].fingerprint
        agree = fingerprint(kept, row_columns(self._table.ledger)) == replayed
        if not agree:
            found = difference(kept, self._rows(fence.snapshot_id), self._table.contract)
            find(
                Verdict.UNKNOWN,
                "reads-disagree",
                "the snapshot as it was read at the fence is not what the deltas say",
                expected=f"{found.rows_expected} rows, as read at the fence",
                actual=f"{found.rows_actual} rows; {found}",
                examples=found.examples,
            )
        return stands and agree

    def _at_the_end(self) -> None:
        """The last snapshot must hold all that the source committed, which ends with the last fence."""
        if self._found.last in self._found.unseen:
            return
        last, until = self._positions[-1], self._table.fences[-1].mark.operation
        committed = self._table.ledger.num_rows
        ended = self._judgement.check(
            f"{self._table.name}: the last snapshot holds all that was committed",
            expected=f"operation {committed}, that of the last fence",
            actual=f"operation {_operation(last)} in snapshot {last.snapshot_id}; last fence {until}",
            held=last.operation == until == committed,
        )
        if ended or last in (*self._nowhere, *self._back):
            return
        self._judgement.find(
            Verdict.UNKNOWN if committed != until else Verdict.INVALID,
            "not-at-the-end",
            "the source went on after the last fence, so it is not known whether the rest arrived"
            if committed != until
            else "the last snapshot does not hold all that was committed",
            where=f"{self._table.name}, snapshot {last.snapshot_id}",
            expected=f"after operation {until}, the last fence's",
            actual=f"after operation {last.operation}, of {committed} committed",
        )


def _operation(position: SnapshotPosition) -> str:
    return "none" if position.operation == NO_OPERATION else str(position.operation)
