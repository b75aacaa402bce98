"""Oracle: a job that was stopped went on where it had stopped, without a gap or a row read again (§5.2).

While a job is down its sink stands still at some operation of the ledger. From that one the next life
must go on. It can't see what a restart by Flink itself, which leaves the job up, read again.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from harness.ledger import UPDATE
from harness.model import Evidence, Fence, OracleResult, SinkState, Verdict
from harness.oracles.comparison import Difference, difference
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.judgement import Judgement
from harness.oracles.positions import last_shown, operations_like

NAME = "continuity"

STOPS = ("stop-with-savepoint",)
"""Faults that stop every job, so that each table's rows must have been kept meanwhile."""


def applies(evidence: Evidence) -> bool:
    """Whether a job was stopped in this run, or should have been."""
    return bool(evidence.states) or any(proof.fault in STOPS for proof in evidence.faults)


def judge(exhibits: Exhibits) -> OracleResult:
    """INVALID when a stopped sink is no state of the source, or what followed was not the rest of it."""
    evidence = exhibits.evidence
    judgement = Judgement(NAME, unit="stopped tables")
    for state in evidence.states:
        _Stop(judgement, evidence, exhibits.table(state.table), state).judge()
    kept = {(state.table, state.fault) for state in evidence.states}
    for number, proof in enumerate(evidence.faults, start=1):
        for contract in evidence.tables:
            if proof.fault in STOPS and (contract.name, number) not in kept:
                judgement.find(
                    Verdict.UNKNOWN,
                    "state-missing",
                    "the rows of a table were not kept while its job was down",
                    where=f"{contract.name}, fault {number}",
                )
    return judgement.result()


class _Stop:
    """One table whose job was down, under judgement."""

    def __init__(self, judgement: Judgement, evidence: Evidence, table: OpenTable, state: SinkState) -> None:
        self._judgement = judgement
        self._jobs = [job for job in evidence.jobs if job.name == table.name]
        self._table = table
        self._state = state
        self._where = f"{state.table}, fault {state.fault}, snapshot {state.snapshot_id}"
        self._find = partial(judgement.find, where=self._where)

    def judge(self) -> None:
        state = self._state
        if state.error or not state.sink_rows:
            self._find(
                Verdict.UNKNOWN,
                "state-unread",
                "the sink could not be read while its job was down",
                actual=state.error or "no rows kept",
            )
            return
        before = [fence for fence in self._table.fences if fence.mark.operation <= state.committed]
        after = [fence for fence in self._table.fences if fence.mark.operation > state.committed]
        if not before:
            # Snapshots of the initial load are no prefix of the ledger: the load filters per chunk.
            self._find(
                Verdict.UNKNOWN,
                "no-fence-before",
                "the job was stopped before the first fence, when its sink need not be a state of the source",
            )
            return
        for fence in (before[-1], *after[:1]):
            contradiction = self._table.at(fence).contradiction
            if contradiction:
                self._find(
                    Verdict.UNKNOWN,
                    "ledger-is-not-source",
                    f"the stop can't be judged by the ledger: fence {fence.mark.number}: {contradiction}",
                )
                return
        operations = self._operations(before[-1].mark.operation)
        if operations and after:
            self._went_on(operations, after[0])
        elif operations:
            self._find(
                Verdict.UNKNOWN,
                "no-fence-after",
                "no fence was read after the restart, so it is not known whether the job went on",
            )

    def _operations(self, first: int) -> list[int]:
        """The operations after which the ledger is the stopped sink, row by row."""
        state, ledger = self._state, self._table.ledger
        rows = self._table.rows(state.sink_rows)
        likely = operations_like(ledger, rows, key=self._table.contract.source_key)
        found = [number for number in likely if first <= number <= state.committed]
        while found and not self._difference(found[0], rows).is_empty:
            found = found[1:]
        expected = f"the ledger after one of the operations {first} to {state.committed}"
        self._judgement.examined += 1
        if self._judgement.check(
            f"{self._where}: the stopped sink is a state of the source",
            expected=expected,
            actual=f"after operation {found[0]}" if found else "after none",
            held=bool(found),
        ):
            return found
        nearest = min(max(first, last_shown(ledger, rows)), state.committed, ledger.num_rows)
        differing = self._difference(nearest, rows)
        outside = f"as after operation {likely[0]}, which is not one of those; " if likely else ""
        self._find(
            Verdict.INVALID,
            "no-such-state",
            "the sink of the stopped job never was a state of the source at that time",
            expected=expected,
            actual=f"{outside}against operation {nearest}, the nearest: {differing}",
            examples=differing.examples,
        )
        return []

    def _difference(self, operation: int, rows: pa.Table) -> Difference:
        return difference(self._table.state(operation), rows, self._table.contract)

    def _went_on(self, operations: list[int], fence: Fence) -> None:
        """The rest of the ledger, from one of these operations to the fence, must have followed."""
        self._restored_from_the_savepoint()
        if not fence.sink_rows:
            self._find(Verdict.UNKNOWN, "rows-unread", "the sink's rows were not read at the fence after it")
            return
        expected = self._table.at(fence).expected
        found = difference(expected, self._table.rows(fence.sink_rows), self._table.contract)
        emitted = self._emitted(fence)
        self._judgement.check(
            f"{self._where}: operations {operations[0] + 1} to {fence.mark.operation} followed",
            expected=f"{found.rows_expected} rows at fence {fence.mark.number}",
            actual=f"{found.rows_actual} rows; {found}"
            + ("" if emitted >= 0 else "; how much the source emitted is not known"),
            held=found.is_empty,
        )
        if not found.is_empty:
            self._find(
                Verdict.INVALID,
                "not-continued",
                f"what followed the restart is not the rest of the source: {found}",
                expected=f"the ledger after operation {fence.mark.operation}",
                actual=f"{found.rows_actual} rows at fence {fence.mark.number}",
                examples=found.examples,
            )
        if emitted >= 0:
            self._counted(operations, fence, emitted)

    def _restored_from_the_savepoint(self) -> None:
        """Without that a restart from a savepoint was not seen, whatever followed."""
        savepoint = self._state.savepoint
        restored = [job.restored_from for job in self._jobs if job.restored_from]
        if savepoint and savepoint not in restored:
            self._find(
                Verdict.UNKNOWN,
                "not-restored-from-it",
                "no life of the job began from the savepoint that stopped it",
                expected=savepoint,
                actual=", ".join(restored) or "nothing",
            )

    def _emitted(self, fence: Fence) -> int:
        """What the source emitted from the restart to the fence; -1 when that is not known.

        Flink counts since the last start of the tasks, so that must have been the one after the stop.
        """
        moment = fence.job
        if moment is None or moment.restarts or moment.life == 1:
            return -1
        savepoint = self._state.savepoint
        begun = [job.life for job in self._jobs if savepoint and job.restored_from == savepoint]
        return moment.source_records if moment.life in (begun or [moment.life]) else -1

    def _counted(self, operations: list[int], fence: Fence, emitted: int) -> None:
        wanted = [self._records(number, fence.mark.operation) for number in operations]
        # A sink left by a job that ended otherwise may be behind its checkpoint: the rest is then committed
        # from the checkpoint's own state, and the source has less to emit.
        at_most = not self._state.savepoint
        held = emitted in wanted or (at_most and emitted <= wanted[0])
        self._judgement.check(
            f"{self._where}: the source emitted these operations and no other",
            expected=f"{'at most ' if at_most else ''}{wanted[0]} change records",
            actual=f"{emitted} change records",
            held=held,
        )
        if not held:
            fewer = emitted < wanted[0]
            self._find(
                Verdict.INVALID,
                "gap" if fewer else "read-again",
                "the source skipped changes after the restart"
                if fewer
                else "the source read changes again that the sink had",
                expected=f"{wanted[0]} change records from operation {operations[0] + 1} to fence "
                f"{fence.mark.number}",
                actual=f"{emitted} change records",
            )

    def _records(self, after: int, until: int) -> int:
        """The change records of the operations after one and until another: an update is two."""
        kinds = self._table.ledger["kind"].slice(after, until - after)
        return len(kinds) + int(pc.sum(pc.equal(kinds, UPDATE)).as_py() or 0)
