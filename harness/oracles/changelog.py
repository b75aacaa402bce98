"""Oracle: a primary-key table's changelog, replayed, is the table, and each row follows from those before.

This is what a reader downstream gets to see. An upsert applied twice leaves the table as it was, but shows
here as a row added to one that is there. An `input` changelog is judged at every snapshot from the base on,
row by row; what a `lookup` or `full-compaction` producer emits comes with compactions and later than the
change, so it is judged as a whole at the last snapshot, and row by row. Snapshots that were not read whole
are known by their deltas: it can't see what a delta leaves out. Nor can it see a row that is added and taken
away again within a snapshot although the source never had it, nor in which order two keys changed there; nor
what a table without a producer would have emitted.
"""

from __future__ import annotations

from functools import partial

from harness.model import Evidence, OracleResult, SnapshotRecord, TableContract, TableHistory, Verdict
from harness.oracles import late_commits
from harness.oracles.changelog_rows import Apart, ChangelogRows, Offences
from harness.oracles.comparison import MAX_EXAMPLES
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.judgement import Judgement
from harness.oracles.prefixes import positions
from harness.replay import rows_at

NAME = "changelog"

NONE, INPUT, LATER = "none", "input", ("lookup", "full-compaction")
"""The values of Paimon's option `changelog-producer`; LATER are those that emit with a compaction."""


def keyed(evidence: Evidence) -> list[TableContract]:
    """The tables that have a primary key; the changelog of an append-only table is its deltas."""
    return [table for table in evidence.tables if not table.append_only]


def without_producer(evidence: Evidence) -> list[str]:
    """The primary-key tables that are known to have no changelog producer."""
    producers = {history.table: history.changelog_producer for history in evidence.histories}
    return [table.name for table in keyed(evidence) if producers.get(table.name) == NONE]


def applies(evidence: Evidence) -> bool:
    """Whether some table has a changelog, or it is not known that it has none."""
    return len(without_producer(evidence)) < len(keyed(evidence))


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when every changelog that should be there was read, sums up to its table, and breaks no rule."""
    evidence = exhibits.evidence
    judgement = Judgement(NAME, unit="changelog rows")
    for contract in keyed(evidence):
        table = exhibits.table(contract.name)
        history = table.history
        if history is not None and history.changelog_producer == NONE:
            judgement.find(
                Verdict.VALID,
                "no-changelog",
                f"{contract.name} has no changelog producer, so there is no changelog to judge",
                where=contract.name,
            )
        elif history is None or history.error or not history.changelog or not history.changes:
            judgement.find(
                Verdict.UNKNOWN,
                "changelog-unread",
                "the changelog or the table's history was not read",
                where=contract.name,
                actual=(history.error if history else "") or "nothing kept",
            )
        elif history.changelog_producer not in (INPUT, *LATER):
            judgement.find(
                Verdict.UNKNOWN,
                "producer-unknown",
                "it is not known when this changelog is emitted",
                where=contract.name,
                expected=", ".join((INPUT, *LATER)),
                actual=history.changelog_producer or "nothing",
            )
        else:
            _Log(judgement, evidence, table, history).judge()
    return judgement.result()


class _Log:
    """The changelog of one table under judgement."""

    def __init__(
        self, judgement: Judgement, evidence: Evidence, table: OpenTable, history: TableHistory
    ) -> None:
        self._judgement = judgement
        self._table = table
        self._history = history
        self._find = partial(judgement.find, where=table.name)
        self._records = {record.snapshot_id: record for record in table.snapshots}
        reached = [fence.snapshot_id for fence in table.fences]
        self._last = max([*self._records, *reached], default=0)
        self._reads_from_the_start = evidence.startup == "initial"
        accepted = late_commits.LIMIT in evidence.accepts
        completed = late_commits.completed_by(positions(table)) if accepted else {}
        self._joined = {number: by.snapshot_id for number, by in completed.items()}

    def judge(self) -> None:
        history, base = self._history, self._history.base_snapshot
        if not base:
            self._find(
                Verdict.UNKNOWN, "no-base", "no snapshot was read whole, so there is nothing to start from"
            )
            return
        changes = self._table.raw_rows(history.changes)
        changelog = self._table.raw_rows(history.changelog)
        until = self._known_until()
        whole_life = all(number in self._records for number in range(1, base + 1)) and not any(
            gap.snapshot_id <= base for gap in history.gaps
        )
        rows = ChangelogRows(self._table.contract, changes=changes, changelog=changelog, until=until)
        try:
            self._counted(rows, 0 if whole_life else base, until)
            if history.changelog_producer == INPUT:
                state = rows_at(changes, base, self._table.contract)
                self._at_every_snapshot(rows, base, until)
                self._whole_updates(rows.half_updates(after=base, joined=self._joined))
                self._in_turn(rows.out_of_turn(state, after=base), f"after snapshot {base}")
                # A job that began in the middle passes on deletes of rows that it never read.
                if whole_life and self._reads_from_the_start:
                    self._from_the_start(rows, base)
            elif whole_life:
                self._when_emitted(rows, base, until)
                self._held(rows.never_held())
                self._in_turn(rows.out_of_turn(None, after=0), "from snapshot 1 on")
            else:
                # What was not yet emitted at the base is not known, so the state of the log isn't either.
                self._find(
                    Verdict.UNKNOWN,
                    "start-unknown",
                    "the first snapshots are not known, and this producer emits later than it commits",
                    expected=f"snapshots 1 to {base}",
                    todo="keep more snapshots (snapshot.num-retained.max, snapshot.time-retained)",
                )
        finally:
            rows.close()

    def _known_until(self) -> int:
        """The last snapshot from the base on without a gap; a gap is a finding."""
        base = self._history.base_snapshot
        gaps = {gap.snapshot_id: gap for gap in self._history.gaps if gap.snapshot_id >= base}
        unknown = sorted(
            gaps.keys() | {number for number in range(base, self._last + 1) if number not in self._records}
        )
        if not unknown:
            return self._last
        missing = [gap for gap in gaps.values() if gap.files_missing]
        first = gaps.get(unknown[0])
        self._find(
            Verdict.INVALID if missing else Verdict.UNKNOWN,
            "sink-files-missing" if missing else "snapshots-unknown",
            "files that a snapshot refers to are gone"
            if missing
            else "a snapshot is not known, so what its changelog had to say isn't either",
            expected=f"snapshots {base} to {self._last}",
            actual=f"{len(unknown)} not known, the first is {unknown[0]}"
            + (f": {first.error}" if first else ""),
            examples=tuple(f"snapshot {gap.snapshot_id}: {gap.error}" for gap in missing[:MAX_EXAMPLES]),
        )
        return unknown[0] - 1

    def _counted(self, rows: ChangelogRows, after: int, until: int) -> None:
        """Compare the number of rows with what the snapshots' metadata says, so that none went unread."""
        counts = rows.counts()
        numbers = range(after + 1, until + 1)
        self._judgement.examined += sum(counts.get(number, 0) for number in numbers)
        differing = [
            f"snapshot {number}: {self._records[number].changelog_records} records, "
            f"{counts.get(number, 0)} rows read"
            for number in numbers
            if counts.get(number, 0) != self._records[number].changelog_records
        ]
        if not self._judgement.check(
            f"{self._table.name}: as many changelog rows were read as the snapshots say",
            expected=f"{len(numbers)} of {len(numbers)} snapshots",
            actual=f"{len(numbers) - len(differing)}",
            held=not differing,
        ):
            self._find(
                Verdict.UNKNOWN,
                "changelog-count-differs",
                "the metadata of snapshots promise other numbers of changelog rows than were read",
                examples=tuple(differing[:MAX_EXAMPLES]),
            )

    def _at_every_snapshot(self, rows: ChangelogRows, base: int, until: int) -> None:
        numbers = range(base + 1, until + 1)
        apart = rows.apart(numbers, after=base)
        if not self._judgement.check(
            f"{self._table.name}: content of snapshot {base} + changelog = content, at every snapshot",
            expected=f"equal at {len(numbers)} snapshots",
            actual=f"equal at {len(numbers) - len(apart)}",
            held=not apart,
        ):
            self._differs("changelog-differs", apart)

    def _from_the_start(self, rows: ChangelogRows, base: int) -> None:
        apart = rows.apart([base], after=0)
        if not self._judgement.check(
            f"{self._table.name}: changelog of snapshots 1 to {base} = content of snapshot {base}",
            expected="equal",
            actual=str(apart[0]) if apart else "equal",
            held=not apart,
        ):
            self._differs("first-changelog-differs", apart)

    def _differs(self, code: str, apart: tuple[Apart, ...]) -> None:
        first = apart[0]
        self._find(
            Verdict.INVALID,
            code,
            f"the changelog does not sum up to the table at {len(apart)} snapshots, first at "
            f"{first.snapshot_id} ({self._kind(first.snapshot_id)})",
            expected=f"the content of snapshot {first.snapshot_id}",
            actual=str(first),
            examples=first.examples,
        )

    def _when_emitted(self, rows: ChangelogRows, base: int, until: int) -> None:
        emitting = [
            number for number in range(base, until + 1) if _emits(self._records[number]) and number != until
        ]
        apart = rows.apart([*emitting, until], after=0)
        late = [one for one in apart if one.snapshot_id != until]
        self._judgement.check(
            f"{self._table.name}: changelog = content where a compaction emitted",
            expected="equal, or not yet emitted",
            actual=f"equal at {len(emitting) - len(late)} of {len(emitting)} snapshots from {base} on, "
            f"not yet emitted at {len(late)}",
            held=True,
        )
        pending = [one for one in apart if one.snapshot_id == until]
        if not self._judgement.check(
            f"{self._table.name}: all was emitted at snapshot {until}, changelog = content",
            expected="equal",
            actual=str(pending[0]) if pending else "equal",
            held=not pending,
        ):
            self._find(
                Verdict.UNKNOWN,
                "not-yet-emitted",
                f"changes of the table were not emitted when snapshot {until} was read, so it is not known "
                "whether they ever are",
                actual=str(pending[0]),
                examples=pending[0].examples,
                todo="let the job run until a compaction has emitted them, then fence again",
            )

    def _in_turn(self, found: Offences, since: str) -> None:
        self._ruled(
            found,
            f"each row takes away what is there or adds what is not, {since}",
            "changelog-out-of-turn",
            "rows do not follow from the rows before them: a reader of this changelog goes wrong",
        )

    def _whole_updates(self, found: Offences) -> None:
        self._ruled(
            found,
            "each -U has its +U in the same snapshot",
            "half-update",
            "keys have one half of an update without the other in a snapshot",
        )

    def _held(self, found: Offences) -> None:
        self._ruled(
            found,
            "only rows that the table held are added",
            "never-held",
            "rows were added by the changelog that the table held at no snapshot until then",
        )

    def _ruled(self, found: Offences, name: str, code: str, what: str) -> None:
        if not self._judgement.check(
            f"{self._table.name}: {name}",
            expected="no row breaks this",
            actual=f"{found.count} do",
            held=not found.count,
        ):
            self._find(
                Verdict.INVALID,
                code,
                f"{found.count} {what}",
                actual=f"{found.count}",
                examples=found.examples,
            )

    def _kind(self, snapshot_id: int) -> str:
        return self._records[snapshot_id].kind


def _emits(record: SnapshotRecord) -> bool:
    return record.kind == "COMPACT" and record.changelog_records > 0
