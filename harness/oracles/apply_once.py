"""Oracle: no operation was applied twice or not at all to sums that the job keeps of an append-only table.

A key hides a row that is applied twice, a sum does not. Only inserts are summed up, so the rows that a
snapshot's sums are of say how many operations it holds: its sums must be those of the first so many of the
ledger, at every snapshot from the first fence on. Snapshots of the first load before are none such, since
it reads the source in chunks. It can't see:
- two operations of one group that changed places;
- rows whose users' ids make up for each other in one group of one snapshot;
- snapshots before the first fence (what was wrong there is wrong in the later ones too);
- what was committed after the last fence and never came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.ledger import INSERT
from harness.model import Aggregate, AggregateContract, Evidence, Fence, OracleResult, SnapshotRecord, Verdict
from harness.oracles.comparison import MAX_EXAMPLES
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.judgement import Judgement, require_every_fence
from harness.oracles.running_sums import RunningSums

NAME = "apply_once"


def applies(evidence: Evidence) -> bool:
    """Whether a job of the run keeps sums."""
    return any(table.aggregate for table in evidence.tables)


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when each snapshot of each table of sums holds those of the first operations, all once."""
    judgement = Judgement(NAME, unit="snapshots of sums")
    evidence = exhibits.evidence
    summed = [table for table in exhibits.tables() if table.contract.aggregate]
    for table in summed:
        aggregate = next((one for one in evidence.aggregates if one.table == table.name), None)
        if aggregate is None or aggregate.error or not aggregate.rows:
            judgement.find(
                Verdict.UNKNOWN,
                "sums-unread",
                "the sums that the job keeps were not read",
                where=table.name,
                actual=(aggregate.error if aggregate else "") or "nothing kept",
            )
        elif table.contract.aggregate and _can_be_counted(judgement, table):
            rows, contract = table.raw_rows(aggregate.rows), table.contract.aggregate
            with RunningSums(table.ledger, rows, contract) as sums:
                _Aggregate(judgement, table, contract, aggregate, sums).judge()
    require_every_fence(judgement, evidence, [table.contract for table in summed])
    return judgement.result()


def _can_be_counted(judgement: Judgement, table: OpenTable) -> bool:
    """Whether the ledger is what the source did, and that was to insert."""
    others = set(table.ledger["kind"].unique().to_pylist()) - {INSERT}
    if others:
        judgement.find(
            Verdict.UNKNOWN,
            "not-insert-only",
            "the source did more than insert, so how many rows sums are of does not say which",
            where=table.contract.source,
            actual=", ".join(sorted(others)),
        )
    told = {fence.mark.number: table.at(fence).contradiction for fence in table.fences}
    contradictions = [f"fence {number}: {why}" for number, why in told.items() if why]
    if contradictions:
        judgement.find(
            Verdict.UNKNOWN,
            "ledger-is-not-source",
            "the sums can't be judged by the ledger",
            where=table.name,
            examples=tuple(contradictions[:MAX_EXAMPLES]),
        )
    return not others and not contradictions


class _Aggregate:
    """The sums of one table under judgement."""

    def __init__(
        self,
        judgement: Judgement,
        table: OpenTable,
        contract: AggregateContract,
        aggregate: Aggregate,
        sums: RunningSums,
    ) -> None:
        self._judgement = judgement
        self._table = table
        self._contract = contract
        self._aggregate = aggregate
        self._sums = sums
        self._records = sorted(aggregate.snapshots, key=lambda record: record.snapshot_id)
        unread = {gap.snapshot_id for gap in aggregate.gaps}
        self._known = [record for record in self._records if record.snapshot_id not in unread]
        last = max((record.snapshot_id for record in self._records), default=1)
        self._unseen = set(range(1, last + 1)) - {record.snapshot_id for record in self._known}
        counted = sums.counts()
        self._counts = {one.snapshot_id: counted.get(one.snapshot_id, 0) for one in self._known}
        self._commits = {record.snapshot_id: record.commit_identifier for record in table.snapshots}

    def judge(self) -> None:
        self._all_read()
        if not self._table.fences:
            return  # which the judgement of fences says
        judged = self._after_the_load()
        self._judgement.examined += len(judged)
        wrong = self._sums.differences({one.snapshot_id: self._counts[one.snapshot_id] for one in judged})
        self._each_a_prefix(judged, wrong)
        self._none_fewer(judged)
        for fence in self._table.fences:
            self._at_fence(fence, wrong)

    def _all_read(self) -> None:
        """Every snapshot until the last one must have been there and been read."""
        gaps = self._aggregate.gaps
        gone = [f"snapshot {gap.snapshot_id}: {gap.error}" for gap in gaps if gap.files_missing]
        unread = [f"snapshot {gap.snapshot_id}: {gap.error}" for gap in gaps if not gap.files_missing]
        told = {gap.snapshot_id for gap in gaps}
        unread += [f"snapshot {one}: the table has none such" for one in sorted(self._unseen - told)]
        if gone:
            self._find(
                Verdict.INVALID,
                "sink-files-missing",
                f"{len(gone)} snapshots can't be read because their files are gone",
                examples=gone,
            )
        if unread:
            self._find(
                Verdict.UNKNOWN,
                "snapshots-unseen",
                f"of {len(unread)} snapshots the sums are not known",
                expected="every snapshot from the first to the last",
                examples=unread,
            )

    def _after_the_load(self) -> list[SnapshotRecord]:
        """The snapshots from the first on that holds what was committed until the first fence, or should.

        One that was committed by the checkpoint that the fence was read of, or later, should.
        """
        first = self._table.fences[0]
        commit = self._commits.get(first.snapshot_id)
        begun = [
            self._counts[one.snapshot_id] >= first.mark.operation
            or (commit is not None and one.commit_identifier >= commit)
            for one in self._known
        ]
        return self._known[begun.index(True) :] if True in begun else []

    def _each_a_prefix(self, judged: Sequence[SnapshotRecord], wrong: Mapping[int, list[str]]) -> None:
        skipped = len(self._known) - len(judged)
        if self._judgement.check(
            f"{self._table.name}: each snapshot's sums are those of the operations until one",
            expected=f"{len(judged)} snapshots (and {skipped} of the first load, which are not judged)",
            actual=f"{len(judged) - len(wrong)} are" + (f", {len(wrong)} are not" if wrong else ""),
            held=not wrong,
        ):
            return
        # Sums do not forget: of what is wrong, the first says most.
        first = next(record for record in judged if record.snapshot_id in wrong)
        before = [self._counts[one.snapshot_id] for one in judged if one.snapshot_id < first.snapshot_id]
        count, committed = self._counts[first.snapshot_id], self._table.ledger.num_rows
        explanation = self._sums.explain(first.snapshot_id, count, sorted(before))
        code = "sums-differ"
        if count > committed or (explanation and explanation.times):
            code = "applied-twice"
        elif explanation:
            code = "operations-lost"
        beyond = f"; the source committed {committed}" if count > committed else ""
        groups = wrong[first.snapshot_id]
        self._find(
            Verdict.INVALID,
            code,
            "a snapshot's sums are not those of the first operations of the source"
            + (f", but {explanation}" if explanation else "")
            + f"; {len(wrong)} snapshots are wrong from there on",
            record=first,
            expected=f"the sums of {count} operations, as it counts them",
            actual=f"{len(groups)} groups have others{beyond}",
            examples=groups,
        )

    def _none_fewer(self, judged: Sequence[SnapshotRecord]) -> None:
        """No snapshot may hold fewer operations than one before it."""
        most = 0
        for record in judged:
            count = self._counts[record.snapshot_id]
            if count < most:
                self._find(
                    Verdict.INVALID,
                    "went-back",
                    "a snapshot holds fewer operations than one before it",
                    record=record,
                    expected=f"{most} or more",
                    actual=str(count),
                )
                return
            most = count

    def _at_fence(self, fence: Fence, wrong: Mapping[int, list[str]]) -> None:
        """What the checkpoint of the fence brought here must be all until the fence, and no more.

        The job's two tables get the same rows before the same checkpoint; the source stood still then.
        """
        number, until = fence.mark.number, fence.mark.operation
        commit, seen = self._commits.get(fence.snapshot_id), fence.visible
        if not seen or commit is None:
            self._find(
                Verdict.UNKNOWN,
                "fence-uncommitted",
                f"it is not known which checkpoint brought fence {number}",
                actual="its snapshot is not in the table's history" if seen else "its marker was not seen",
            )
            return
        held = [record for record in self._known if record.commit_identifier <= commit]
        after = held[-1].snapshot_id + 1 if held else 1
        if after in self._unseen:
            return  # which is told already: what the checkpoint brought may be there
        count = self._counts[held[-1].snapshot_id] if held else 0
        if self._judgement.check(
            f"{self._table.name}, fence {number}: sums of checkpoint {commit}",
            expected=f"of {until} operations",
            actual=f"of {count} operations",
            held=count == until,
        ):
            return
        if held and held[-1].snapshot_id in wrong:
            return  # which is told with its groups
        if count < until and all(record.commit_identifier < commit for record in self._records):
            self._find(
                Verdict.UNKNOWN,
                "commit-unseen",
                f"no commit of checkpoint {commit}, which brought fence {number}, was seen in the sums",
                expected=f"{until} operations",
                actual=f"{count} operations",
                todo="was the job still running at the end?",
            )
            return
        self._find(
            Verdict.INVALID,
            "not-at-fence",
            f"a checkpoint brought other operations to the sums than to the log, which was at fence {number}",
            record=held[-1] if held else None,
            expected=f"{until} operations",
            actual=f"{count} operations",
        )

    def _find(
        self,
        verdict: Verdict,
        code: str,
        what: str,
        *,
        record: SnapshotRecord | None = None,
        expected: str = "",
        actual: str = "",
        examples: Sequence[str] = (),
        todo: str = "",
    ) -> None:
        where = f"{self._table.name}, {self._contract.sink}"
        if record is not None:
            where += f", snapshot {record.snapshot_id} ({record.kind}, checkpoint {record.commit_identifier})"
        self._judgement.find(
            verdict,
            code,
            what,
            where=where,
            expected=expected,
            actual=actual,
            examples=tuple(examples[:MAX_EXAMPLES]),
            todo=todo,
        )
