"""Oracle: the commits fit together. Each came once, from the job alone, on what the one before it left.

Judged from snapshot and manifest files as they were read without Paimon, and from the snapshots' records
as a reader of the sink gave them: nothing here looks at rows. It can't see:
- a snapshot file that another writer put whole in the place of one: it leaves files that nothing refers to;
- a foreign writer that took the job's own commit user, or the place of a start that never committed;
- a commit that repeats one from before the first snapshot that is still there;
- rows that are wrong inside of files that are right.
Files that no snapshot refers to are counted and held against nobody: those of a failed commit stay until
orphan files are cleaned, and those of a checkpoint that goes on are not referred to yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.commits import ENTRY_SCHEMA
from harness.model import CommitLog, OracleResult, Verdict
from harness.oracles.committers import COMPACT, judge_committers
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.judgement import Judgement
from harness.oracles.manifests import Manifests, RowSums
from harness.oracles.rules import Rules

NAME = "commit_log"


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when every table's commits were read, and hold together one after the other."""
    judgement = Judgement(NAME, unit="commits")
    for table in exhibits.tables():
        _Commits(judgement, exhibits, table).judge()
    return judgement.result()


class _Commits:
    """One table's commits under judgement."""

    def __init__(self, judgement: Judgement, exhibits: Exhibits, table: OpenTable) -> None:
        evidence = exhibits.evidence
        self._judgement = judgement
        self._rules = Rules(judgement, table.name)
        self._table = table
        self._lives = [job for job in evidence.jobs if job.name == table.name]
        self._records = table.snapshots
        logs = [log for log in evidence.commits if log.table == table.name]
        self._log = logs[0] if logs else CommitLog(table=table.name)

    def judge(self) -> None:
        judge_committers(self._rules, self._lives, self._records)
        if self._log.error or not self._log.entries or not self._log.files:
            self._rules.find(
                Verdict.UNKNOWN,
                "commits-unread",
                "the table's commits were not read",
                actual=self._log.error or "no manifest entries, or no list of files",
            )
            return
        entries, files = (self._table.raw_rows(file) for file in (self._log.entries, self._log.files))
        compacts = [record.snapshot_id for record in self._records if record.kind == COMPACT]
        with Manifests(entries.select(ENTRY_SCHEMA.names), files, compacts) as manifests:
            read = manifests.snapshots()
            self._judgement.examined += len(read)
            self._all_there(read)
            self._in_storage(manifests)
            if unread := manifests.unread():
                self._rules.find(
                    Verdict.UNKNOWN,
                    "manifests-unread",
                    "snapshot or manifest files could not be read, so what they say is not known",
                    examples=[f"snapshot {number}: {file}" for number, file in unread],
                )
                return
            self._hold_together(manifests)
            self._rows_add_up(manifests.sums())

    def _all_there(self, read: Sequence[int]) -> None:
        """Every snapshot between the first and the last fence was read, and by both ways."""
        if not read:
            self._rules.find(Verdict.UNKNOWN, "no-commits", "the table has no snapshot")
            return
        fenced = [fence.snapshot_id for fence in self._table.fences if fence.snapshot_id]
        # Expiry takes the oldest only: what a fence saw and is newer than all that is there was undone.
        newest = max([read[-1], *fenced])
        gaps = sorted(set(range(read[0], newest + 1)) - set(read))
        self._rules.require_none(
            "snapshots follow each other without a gap",
            [f"snapshot {number}" for number in gaps],
            "snapshot-gone",
            "a snapshot is gone from between others, or from the end",
            held=f"snapshots {read[0]} to {read[-1]}",
        )
        between = range(min(fenced, default=read[0]), max(fenced, default=read[-1]) + 1)
        recorded = {record.snapshot_id for record in self._records}
        # Outside of the fences one side may have seen what the other did not: just expired, or new.
        unknown = [
            f"snapshot {number}: not in the {source}"
            for source, ids in (("manifests", {*read, *gaps}), ("list of snapshots", recorded))
            for number in between
            if number not in ids
        ]
        if unknown:
            self._rules.find(
                Verdict.UNKNOWN,
                "commits-incomplete",
                "snapshots between the first and the last fence were not read both ways",
                examples=unknown,
            )

    def _in_storage(self, manifests: Manifests) -> None:
        if not manifests.stored_files():
            self._rules.find(Verdict.UNKNOWN, "files-unlisted", "the list of files in storage is empty")
            return
        self._rules.require_none(
            "every file that a snapshot refers to is in storage",
            [f"snapshot {number}: {file}" for number, file in manifests.missing_files()],
            "files-missing",
            "a file that a snapshot refers to is gone from storage",
            held=f"{manifests.needed_files()} files",
        )
        self._rules.require_none(
            "each of them has the size that its manifest says",
            [
                f"snapshot {number}: {file}, {expected} bytes, in storage {actual}"
                for number, file, expected, actual in manifests.other_sizes()
            ],
            "file-size-differs",
            "a file in storage has another size than its manifest says",
        )

    def _hold_together(self, manifests: Manifests) -> None:
        self._rules.require_none(
            "each commit stands on what the one before it left",
            [f"snapshot {number}: {file}, {over:+d}" for number, file, over in manifests.base_differences()],
            "base-differs",
            "a snapshot's base holds a file too many (+) or lacks one (-): a commit before it was lost, "
            "undone or replaced",
            todo="two writers without a catalog lock lose commits so (apache/paimon#8226)",
        )
        self._rules.require_none(
            "a file is added when it is not there, and deleted when it is",
            [f"snapshot {number}: {file}, {times} times" for number, file, times in manifests.wrong_lives()],
            "file-lives-differ",
            "a file is in a snapshot more than once, or was deleted from one without it",
        )
        self._rules.require_none(
            "each file is added by one commit",
            [
                f"snapshot {number}: {file}, first added by snapshot {first}"
                for number, file, first in manifests.added_again()
            ],
            "file-added-again",
            "a file was added by a second commit",
        )
        count, size_bytes = manifests.orphans()
        self._rules.check(
            "files that no snapshot refers to (for your information)",
            expected="any number: of failed commits, and of checkpoints that go on",
            actual=f"{count} files, {size_bytes} bytes",
            held=True,
        )

    def _rows_add_up(self, sums: dict[int, RowSums]) -> None:
        said = {
            record.snapshot_id: RowSums(
                delta=record.delta_records, changelog=record.changelog_records, total=record.total_records
            )
            for record in self._records
        }
        both = sorted(sums.keys() & said.keys())
        self._rules.require_none(
            "a snapshot counts the rows that its files hold",
            [
                f"snapshot {number}: counts {said[number]}; files hold {sums[number]}"
                for number in both
                if said[number] != sums[number]
            ],
            "row-counts-differ",
            "a snapshot counts other rows than its files hold",
            held=f"{len(both)} snapshots",
        )
