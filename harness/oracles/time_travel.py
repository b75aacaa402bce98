"""Oracle: a snapshot read again later holds what the source had committed (guide §5.1, method 2), made exact.

Snapshots are compared where a fence was. The guide takes any time T, but a snapshot holds the source up
to the barrier of its checkpoint, not up to its own commit time; only at a fence, where the source stood
still until its last row was visible, are both the same. It can't see the snapshots between fences.
"""

from __future__ import annotations

from functools import partial

from harness.model import Fence, OracleResult, TimeTravel, Verdict
from harness.oracles.comparison import difference, place, shown
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.judgement import Judgement, judge_reading, require_every_fence

NAME = "time_travel"


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when the snapshot of every fence, by its time and by its id, is the ledger's state there."""
    evidence = exhibits.evidence
    judgement = Judgement(NAME, unit="snapshot rows")
    travels = {(travel.table, travel.fence): travel for travel in evidence.travels}
    for table in exhibits.tables():
        for fence in table.fences:
            travel = travels.get((table.name, fence.mark.number))
            _Travel(judgement, table, fence).judge(travel)
    require_every_fence(judgement, evidence, evidence.tables)
    for pin in evidence.pins:
        if pin.error:
            judgement.find(
                Verdict.VALID,
                "pin-failed",
                f"no consumer keeps the snapshots of {pin.table}, so they may expire before they are read",
                where=pin.table,
                actual=pin.error,
            )
    return judgement.result()


class _Travel:
    """The way back to one fence of one table, under judgement."""

    def __init__(self, judgement: Judgement, table: OpenTable, fence: Fence) -> None:
        self._judgement = judgement
        self._table = table
        self._fence = fence
        self._source = table.at(fence)
        self._place = place(table.name, fence.mark.number, fence.snapshot_id)
        self._find = partial(judgement.find, where=self._place)

    def judge(self, travel: TimeTravel | None) -> None:
        if travel is None or travel.snapshot_id != self._fence.snapshot_id:
            self._find(
                Verdict.UNKNOWN,
                "not-travelled",
                "the snapshot of a fence was not read again",
                expected=f"snapshot {self._fence.snapshot_id}",
                actual=f"snapshot {travel.snapshot_id}" if travel else "nothing",
            )
            return
        if self._source.contradiction:
            self._find(
                Verdict.UNKNOWN,
                "ledger-is-not-source",
                f"the snapshot can't be judged by the ledger: {self._source.contradiction}",
                expected=shown(self._fence.source.totals),
                actual=shown(self._source.sums),
            )
            return
        if self._totals(travel):
            self._rows(travel)

    def _totals(self, travel: TimeTravel) -> bool:
        """Compare both readers' totals; False when they disagree, since neither is to be believed."""
        asked = [travel.by_id]
        resolved = f"snapshot {travel.resolved_id}" if travel.resolved_id else "no snapshot"
        if self._judgement.check(
            f"{self._place}: found again by its commit time",
            expected=f"snapshot {travel.snapshot_id}",
            actual=resolved,
            held=travel.resolved_id == travel.snapshot_id,
        ):
            asked.append(travel.by_time)
        else:
            # Paimon's own time travel takes the earliest snapshot, in silence, where there is none so old.
            self._find(
                Verdict.UNKNOWN,
                "resolved-elsewhere",
                "the commit time of the snapshot leads to another one, so nothing was read by time",
                expected=f"snapshot {travel.snapshot_id}",
                actual=resolved,
            )
        if travel.by_id.reader == travel.by_time.reader:
            self._find(
                Verdict.UNKNOWN,
                "reader-missing",
                "one reader was asked twice, so none is confirmed by another",
                actual=travel.by_id.reader,
            )
        answers = [reading for reading in asked if not reading.error]
        for reading in answers:
            self._judgement.check(
                f"{self._place}: {reading.reader}",
                expected=shown(self._source.sums),
                actual=shown(reading.totals),
                held=reading.totals == self._source.sums,
            )
        if len({reading.totals for reading in answers}) > 1:
            self._find(
                Verdict.UNKNOWN,
                "readers-disagree",
                "by time and by id the same snapshot gives two answers",
                expected=shown(self._source.sums),
                actual=" · ".join(f"{reading.reader}: {shown(reading.totals)}" for reading in answers),
            )
            return False
        for reading in asked:
            judge_reading(
                self._find,
                reading,
                self._source.sums,
                subject="the snapshot",
                differs=f"the snapshot's totals by {reading.reader} are not those of the source at the fence",
            )
        return True

    def _rows(self, travel: TimeTravel) -> None:
        if not travel.sink_rows:
            self._find(
                Verdict.UNKNOWN,
                "rows-unread",
                "the snapshot's rows were not read again, so keys were not compared",
            )
            return
        contract = self._table.contract
        found = difference(self._source.expected, self._table.rows(travel.sink_rows), contract)
        self._judgement.check_rows(f"{self._place}: every row by {contract.source_key}", found)
        if not found.is_empty:
            self._find(
                Verdict.INVALID,
                "rows-differ",
                f"the snapshot is not what the source held at the fence: {found}",
                expected=f"{found.rows_expected} rows as in the ledger at the fence",
                actual=f"{found.rows_actual} rows",
                examples=found.examples,
            )
