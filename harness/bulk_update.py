"""A bulk update, for a fault to strike while it is read: committed, awaited, and proved to be under way."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import FlinkError, FlinkUnreachable, ReaderError, WaitTimeout
from harness.history import History
from harness.model import BulkUpdate, Check, SnapshotId
from harness.ports import Job, Pipeline
from harness.waiting import wait_until


class BulkUpdateRead:
    """One UPDATE of every row of a table, from its commit on; the workload is paused then.

    A source cuts its checkpoints between rows, so a checkpoint may fall inside the update, and inside one
    of the row events that the binlog splits it into. The marker rows around the update tell which part of
    it a snapshot holds.
    """

    def __init__(self, pipeline: Pipeline, history: History, *, fault: int) -> None:
        """Commit the update. `fault` is the number of the fault that is to strike. Raises SourceError."""
        self._pipeline = pipeline
        self._history = history
        self._fault = fault
        self._marks = marks = pipeline.workload.bulk_update()
        self._table = marks.begin.table
        self._first, self._last = marks.begin.operation + 1, marks.end.operation - 1
        self._tell(
            f"operations {self._first} to {self._last} are one UPDATE, "
            f"committed at {marks.begin.committed_at_ms} ms"
        )

    def await_begun(self, *, timeout_s: float) -> None:
        """Until a snapshot holds a part of the update, or the time is: `checks` tells which."""

        def begun() -> SnapshotId | None:
            newest = self._pipeline.newest_snapshot(self._table)
            return newest if newest and self._pipeline.shows(self._marks.begin, newest) else None

        try:
            newest = wait_until(
                "a snapshot that holds a part of the bulk update",
                begun,
                timeout_s=timeout_s,
                every_s=0.05,
                retry_on=(FlinkUnreachable, ReaderError),
            )
        except WaitTimeout as error:
            self._tell(error.what)
            return
        waited_ms = newest.committed_at_ms - self._marks.begin.committed_at_ms
        self._tell(f"snapshot {newest.snapshot_id} holds a part of it, {waited_ms} ms after its commit")

    def checks(self) -> tuple[Check, ...]:
        """Whether the update is under way now: to be asked right after a fault was injected.

        That the job was restored from a checkpoint inside it is another matter, which evidence tells.
        """
        try:
            said, held = self._seen()
        except ReaderError as error:
            said, held = f"the sink could not be read: {error.what}", False
        return (
            Check(
                name=f"{self._table}: the bulk update was under way",
                expected="the marker before it in the sink, and the one after it not yet",
                actual=said,
                held=held,
            ),
        )

    def _seen(self) -> tuple[str, bool]:
        newest = self._pipeline.newest_snapshot(self._table)
        if newest is None:
            return "the sink has no snapshot", False
        begun, over = (self._pipeline.shows(mark, newest) for mark in (self._marks.begin, self._marks.end))
        part = "all of it" if over else "a part of it" if begun else "none of it"
        return f"snapshot {newest.snapshot_id} holds {part}", begun and not over

    def outcome(self, jobs: Iterable[Job], *, since_ms: int) -> BulkUpdate:
        """The update, and the checkpoint that its job was restored from since the fault (epoch ms).

        Paimon's committer fails on purpose once after a restore, so there may be two from one checkpoint.
        """
        return BulkUpdate(
            table=self._table,
            fault=self._fault,
            first_operation=self._first,
            last_operation=self._last,
            committed_at_ms=self._marks.begin.committed_at_ms,
            restored_checkpoint=self._restored(jobs, since_ms),
        )

    def _restored(self, jobs: Iterable[Job], since_ms: int) -> int:
        job = next(job for job in jobs if job.name == self._table)
        try:
            restore = job.last_restore()
        except FlinkError as error:
            self._tell(f"what the job was restored from can't be asked: {error.what}")
            return 0
        if restore is None or not 0 < since_ms <= restore.at_ms:
            self._tell("the job was not restored after the fault")
            return 0
        self._tell(f"the job was restored from checkpoint {restore.checkpoint_id} at {restore.at_ms} ms")
        return restore.checkpoint_id

    def _tell(self, text: str) -> None:
        self._history.event("bulk update", f"{self._table}: {text}")
