"""Oracle: reconciliation of every table at each fence (guide §5.1, method 1), made exact.

The guide's two queries by two independent readers, with the same predicates on both sides, then every
row key by key, as a multiset. It can't see a wrong state that healed before the fence, nor a change of a
primary-key table applied twice with the same outcome: an upsert swallows both.
"""

from __future__ import annotations

from functools import partial

from harness.model import Fence, OracleResult, Reading, Verdict
from harness.oracles.comparison import difference, place, shown, shown_one
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.judgement import Judgement, judge_reading, require_every_fence

NAME = "reconciliation"


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when at every fence of every table both readers and every row agree with the ledger."""
    judgement = Judgement(NAME, unit="sink rows")
    for table in exhibits.tables():
        for fence in table.fences:
            _Fence(judgement, table, fence).judge()
    require_every_fence(judgement, exhibits.evidence, exhibits.evidence.tables)
    return judgement.result()


class _Fence:
    """One fence of one table under judgement."""

    def __init__(self, judgement: Judgement, table: OpenTable, fence: Fence) -> None:
        self._judgement = judgement
        self._table = table
        self._fence = fence
        self._source = table.at(fence)
        self._name = f"{table.name}, fence {fence.mark.number}"
        self._find = partial(
            judgement.find, where=place(fence.mark.table, fence.mark.number, fence.snapshot_id)
        )

    def judge(self) -> None:
        if not self._ledger_is_source():
            return
        answers = [reading for reading in self._fence.sink if not reading.error]
        for reading in answers:
            self._compare_partitions(reading)
        if len({reading.totals for reading in answers}) > 1:
            self._find(
                Verdict.UNKNOWN,
                "readers-disagree",
                f"two readers of snapshot {self._fence.snapshot_id} disagree",
                expected=shown(self._source.sums),
                actual=" · ".join(f"{reading.reader}: {shown(reading.totals)}" for reading in answers),
            )
            return
        self._something_to_read()
        for reading in self._fence.sink:
            judge_reading(
                self._find,
                reading,
                self._source.sums,
                subject="the sink",
                differs=f"the guide's query by {reading.reader} does not match the source",
            )
        self._rows()

    def _ledger_is_source(self) -> bool:
        source = self._source
        if source.contradiction:
            self._find(
                Verdict.UNKNOWN,
                "ledger-is-not-source",
                f"the sink can't be judged by the ledger: {source.contradiction}",
                expected=shown(self._fence.source.totals),
                actual=shown(source.sums),
                examples=source.rows.examples if source.rows else (),
            )
        return not source.contradiction

    def _something_to_read(self) -> None:
        fence = self._fence
        if not fence.visible:
            self._find(
                Verdict.INVALID,
                "marker-lost",
                "the marker row, committed last, never became visible although checkpoints completed",
                expected=f"key {fence.mark.key} in snapshot {fence.snapshot_id}",
                actual="not there",
            )
        if not sum(total.window_keys for total in self._source.sums):
            self._find(
                Verdict.UNKNOWN, "window-empty", "the time window holds no row, so it compares nothing"
            )
        readers = {reading.reader for reading in fence.sink}
        if len(readers) < 2:
            self._find(
                Verdict.UNKNOWN,
                "reader-missing",
                "fewer than two readers were asked, so none is confirmed by another",
                expected="2 readers",
                actual=", ".join(sorted(readers)) or "none",
            )

    def _compare_partitions(self, reading: Reading) -> None:
        seen = {total.partition: total for total in reading.totals}
        wanted = {total.partition: total for total in self._source.sums}
        for partition in sorted(seen.keys() | wanted.keys()):
            expected, actual = wanted.get(partition), seen.get(partition)
            self._judgement.check(
                f"{self._name}, {reading.reader}, {partition}",
                expected=shown_one(expected),
                actual=shown_one(actual),
                held=expected == actual,
            )

    def _rows(self) -> None:
        fence, contract = self._fence, self._table.contract
        if not fence.sink_rows:
            self._find(
                Verdict.UNKNOWN, "rows-unread", "the sink's rows were not read, so keys were not compared"
            )
            return
        found = difference(self._source.expected, self._table.rows(fence.sink_rows), contract)
        self._judgement.check_rows(f"{self._name}, every row by {contract.source_key}", found)
        if not found.rows_expected and not found.rows_actual:
            self._find(Verdict.UNKNOWN, "nothing-to-compare", "source and sink are empty at this fence")
        if not found.is_empty:
            self._find(
                Verdict.INVALID,
                "rows-differ",
                f"the sink is not the source: {found}",
                expected=f"{found.rows_expected} rows as in the ledger, operation {fence.mark.operation}",
                actual=f"{found.rows_actual} rows in snapshot {fence.snapshot_id}",
                examples=found.examples,
            )
