"""Oracle: an append-only table holds each row of its source once, and each was added once.

No key swallows a duplicate here, so this is where one shows. Rows are compared as multisets at each
fence, and the deltas of all APPEND snapshots too: a row added twice is a duplicate even if it vanished
later. A row that came or went without a delta shows in the snapshots that were read whole. It can't see
one that does so by an APPEND snapshot and is as it was at the next whole read, nor what compaction did
before the first fence when snapshots from then are expired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from harness.ledger import INSERT
from harness.model import Fence, OracleResult, Verdict
from harness.oracles.comparison import MAX_EXAMPLES, difference, place
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.judgement import Judgement, require_every_fence
from harness.oracles.origins import Key, Origins

NAME = "append_exactly_once"


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when every append-only table, at every fence and in all that was added, has each row once."""
    judgement = Judgement(NAME, unit="appended rows")
    tables = [table for table in exhibits.tables() if table.contract.append_only]
    for table in tables:
        _Log(judgement, table).judge()
    require_every_fence(judgement, exhibits.evidence, [table.contract for table in tables])
    return judgement.result()


class _Log:
    """One append-only table under judgement."""

    def __init__(self, judgement: Judgement, table: OpenTable) -> None:
        self._judgement = judgement
        self._table = table
        self._key = table.contract.source_key
        self._keys: pa.ChunkedArray = table.ledger[self._key]
        self._origins = Origins(table, self._keys)

    def judge(self) -> None:
        repeated = len(self._keys) - pc.count_distinct(self._keys).as_py()
        if repeated or set(self._table.ledger["kind"].unique().to_pylist()) - {INSERT}:
            self._judgement.find(
                Verdict.UNKNOWN,
                "not-insert-only",
                "the source did more than insert rows with keys of their own, so rows can't be counted",
                where=self._table.contract.source,
                actual=f"{repeated} keys inserted again",
            )
            return
        for fence in self._table.fences:
            self._at_fence(fence)
        self._in_all_that_was_added()
        self._beside_what_was_added()

    def _at_fence(self, fence: Fence) -> None:
        where = place(self._table.name, fence.mark.number, fence.snapshot_id)
        source = self._table.at(fence)
        if source.contradiction:
            self._judgement.find(
                Verdict.UNKNOWN,
                "ledger-is-not-source",
                f"the sink can't be judged by the ledger: {source.contradiction}",
                where=where,
            )
            return
        if not fence.sink_rows:
            self._judgement.find(Verdict.UNKNOWN, "rows-unread", "the sink's rows were not read", where=where)
            return
        rows = self._table.rows(fence.sink_rows)
        found = difference(source.expected, rows, self._table.contract)
        if self._judgement.check_rows(f"{where}: each row once", found):
            return
        self._blame(rows, where, operation=fence.mark.operation)
        if found.stale:
            self._judgement.find(
                Verdict.INVALID,
                "rows-differ",
                f"{found.stale} rows have other values than the source's",
                where=where,
                examples=found.examples,
            )

    def _blame(self, rows: pa.Table, where: str, *, operation: int) -> None:
        """Name each duplicate, loss and foreign row of a sink, and the snapshots that they came with."""
        held, expected = rows[self._key], self._keys.slice(0, operation)
        of, of_loss = self._origins.of, self._origins.of_loss
        lost, foreign = _beside(expected, held), _beside(held, expected)
        self._name_all("duplicates", "rows are in the sink more than once", where, _repeated(held), of)
        self._name_all("losses", "rows of the source are not in the sink", where, lost, of_loss)
        self._name_all("foreign-rows", "rows are in the sink, but not in the source", where, foreign, of)

    def _in_all_that_was_added(self) -> None:
        table, origins = self._table.name, self._origins
        if origins.error or origins.gaps:
            self._judgement.find(
                Verdict.UNKNOWN,
                "additions-unread",
                "it is not known which snapshot added which row, nor whether one was added twice",
                where=table,
                actual=origins.error or f"{len(origins.gaps)} snapshots are not known",
                examples=origins.gaps[:MAX_EXAMPLES],
            )
        if origins.error:
            return
        until = max((fence.mark.operation for fence in self._table.fences), default=0)
        added = origins.added
        # Rows after the last fence may have been added too, or not yet.
        unseen = _beside(self._keys.slice(0, until), added)
        doubled, foreign = _repeated(added), _beside(added, self._keys)
        self._judgement.check(
            f"{table}: each row was added once, over all snapshots",
            expected=f"{until} rows, each added once",
            actual=f"{len(added)} additions of {pc.count_distinct(added).as_py()} rows; {len(doubled)} added "
            f"more than once, {len(foreign)} not in the source, {len(unseen)} never added",
            held=not (doubled or foreign or unseen),
        )
        self._name_all("added-twice", "rows were added more than once", table, doubled, origins.of)
        self._name_all(
            "added-foreign", "rows were added that are not in the source", table, foreign, origins.of
        )
        if unseen:
            # What the sink lacks too is a loss at its fence; what it has shows that deltas are missing here.
            self._judgement.find(
                Verdict.UNKNOWN,
                "never-added",
                f"{len(unseen)} rows of the source are in no delta that was read",
                where=table,
                examples=tuple(origins.of_loss(key) for key in unseen[:MAX_EXAMPLES]),
            )

    def _beside_what_was_added(self) -> None:
        table, origins = self._table.name, self._origins
        if origins.error:
            return
        keys = origins.without_delta
        self._judgement.check(
            f"{table}: rows come by the deltas of APPEND snapshots, and none goes",
            expected="0 rows that came or went otherwise",
            actual=f"{len(keys)} rows",
            held=not keys,
        )
        self._name_all(
            "rows-without-delta",
            "rows appeared or vanished that no APPEND snapshot brought",
            table,
            tuple(dict.fromkeys(keys)),
            origins.of_change,
        )

    def _name_all(
        self, code: str, what: str, where: str, keys: Sequence[Key], tell: Callable[[Key], str]
    ) -> None:
        if keys:
            self._judgement.find(
                Verdict.INVALID,
                code,
                f"{len(keys)} {what}",
                where=where,
                examples=tuple(tell(key) for key in keys[:MAX_EXAMPLES]),
            )


def _repeated(keys: pa.ChunkedArray) -> list[Key]:
    """The keys that are there more than once."""
    counted = pc.value_counts(keys)
    repeated: list[Key] = counted.filter(pc.greater(counted.field("counts"), 1)).field("values").to_pylist()
    return repeated


def _beside(keys: pa.ChunkedArray, others: pa.ChunkedArray) -> list[Key]:
    """The keys, each once, that are not among the others."""
    found = keys.unique()
    beside: list[Key] = found.filter(pc.invert(pc.is_in(found, value_set=others))).to_pylist()
    return beside
