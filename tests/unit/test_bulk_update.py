"""Promises of a bulk update that a fault strikes: it is known whether it was under way."""

from __future__ import annotations

import pytest
from fake_workload import BULK_BEGIN, BULK_END
from fakes import Calls, FakeListener, FakePipeline

from harness.bulk_update import BulkUpdateRead
from harness.errors import FlinkUnreachable, ReaderError
from harness.history import History
from harness.model import FenceMark, Restore, SnapshotId

BEGIN, END = -BULK_BEGIN, -BULK_END


class Sink(FakePipeline):
    """A pipeline whose sink can't be read for the first `refusals` looks."""

    def __init__(self, *, hidden: set[int | str], refusals: int = 0) -> None:
        super().__init__(Calls())
        self.hidden = hidden
        self.refusals = refusals
        self.workload.prepare()

    def shows(self, mark: FenceMark, snapshot: SnapshotId) -> bool:
        self.refusals -= 1
        if self.refusals >= 0:
            raise ReaderError("the storage is gone")
        return super().shows(mark, snapshot)


def committed(sink: Sink, history: History | None = None) -> BulkUpdateRead:
    return BulkUpdateRead(sink, history or History(FakeListener()), fault=2)


@pytest.mark.parametrize(
    ("hidden", "said", "held"),
    [
        ({BEGIN, END}, "snapshot 41 holds none of it", False),
        ({END}, "snapshot 41 holds a part of it", True),
        (set(), "snapshot 41 holds all of it", False),
    ],
)
def test_an_update_is_under_way_when_a_part_of_it_is_in_the_sink(
    hidden: set[int | str], said: str, held: bool
) -> None:
    (check,) = committed(Sink(hidden=hidden)).checks()

    assert (said, held) == (check.actual, check.held)
    assert "orders: the bulk update was under way" == check.name


def test_a_sink_without_a_snapshot_or_that_cannot_be_read_proves_nothing() -> None:
    empty, gone = Sink(hidden={END}), Sink(hidden={END}, refusals=9)
    empty.has_snapshots = False
    checks = [*committed(empty).checks(), *committed(gone).checks()]

    assert [False, False] == [check.held for check in checks]
    assert "the sink could not be read: the storage is gone" == checks[1].actual


def test_a_part_in_the_sink_is_waited_for_and_told() -> None:
    history = History(FakeListener())
    committed(Sink(hidden={END}, refusals=2), history).await_begun(timeout_s=5)

    texts = [event.text for event in history.events() if event.kind == "bulk update"]
    assert ["orders: operations 17 to 27 are one UPDATE", "orders: snapshot 41 holds a part of it"] == [
        text.split(",")[0] for text in texts
    ]


def test_an_update_that_never_begins_is_told_and_left_to_its_check() -> None:
    history = History(FakeListener())
    bulk = committed(Sink(hidden={BEGIN, END}), history)
    bulk.await_begun(timeout_s=0.1)

    assert "orders: waited 0 s for a snapshot that holds a part of" in history.events()[-1].text
    assert [False] == [check.held for check in bulk.checks()]


@pytest.mark.parametrize(("restored_at_ms", "checkpoint"), [(99, 0), (100, 7), (180, 7)])
def test_only_a_restore_since_the_fault_counts(restored_at_ms: int, checkpoint: int) -> None:
    sink = Sink(hidden={END})
    orders, _ = sink.fake_jobs
    orders.restore = Restore(checkpoint_id=7, at_ms=restored_at_ms, is_savepoint=False, path="")
    outcome = committed(sink).outcome(sink.fake_jobs, since_ms=100)

    assert (checkpoint, 2) == (outcome.restored_checkpoint, outcome.fault)


def test_a_restore_that_is_not_known_is_none() -> None:
    sink = Sink(hidden={END})
    orders, _ = sink.fake_jobs
    never, bulk = committed(sink).outcome(sink.fake_jobs, since_ms=100), committed(sink)

    def unreachable() -> Restore | None:
        raise FlinkUnreachable("no answer")

    orders.last_restore = unreachable  # type: ignore[method-assign]

    assert 0 == never.restored_checkpoint
    assert 0 == bulk.outcome(sink.fake_jobs, since_ms=100).restored_checkpoint
    orders.last_restore = lambda: Restore(checkpoint_id=7, at_ms=5, is_savepoint=False, path="")  # type: ignore[method-assign]
    assert 0 == bulk.outcome(sink.fake_jobs, since_ms=0).restored_checkpoint  # nothing was injected
