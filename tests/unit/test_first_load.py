"""Promises of the first load: a fault that strikes it proves that it was under way."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import ReaderError
from harness.first_load import FirstLoad
from harness.model import Check


class Sinks:
    """Two sinks in their first load; each look at one finds its next number of rows, then its last again.

    The first `refusals` looks fail.
    """

    def __init__(self, orders: Iterable[int], behavior: Iterable[int], *, refusals: int = 0) -> None:
        self.looks = 0
        self.refusals = refusals
        self._rows = {"orders": iter(orders), "behavior-log": iter(behavior)}
        self._last = {"orders": 0, "behavior-log": 0}

    def look(self, table: str) -> int:
        self.looks += 1
        if self.looks <= self.refusals:
            raise ReaderError("no such table yet")
        self._last[table] = next(self._rows[table], self._last[table])
        return self._last[table]

    def struck(self) -> tuple[Check, ...]:
        load = FirstLoad(["orders", "behavior-log"], rows=1000, sink_rows=self.look)
        load.await_begun(timeout_s=0.05)
        return load.checks()


def said(checks: tuple[Check, ...]) -> list[tuple[str, bool]]:
    return [(check.actual, check.held) for check in checks]


def test_a_load_is_under_way_when_each_sink_has_some_rows_and_not_yet_all() -> None:
    sinks = Sinks([400], [1])
    checks = sinks.struck()

    assert [("400 rows", True), ("1 rows", True)] == said(checks)
    assert 4 == sinks.looks
    assert "orders: its first load was under way" == checks[0].name
    assert "more than 0 and less than 900 of 1,000 rows in the sink" == checks[0].expected


def test_a_load_that_begins_late_is_waited_for() -> None:
    assert [True, True] == [held for _, held in said(Sinks([0, 400], [1]).struck())]


def test_a_load_that_never_began_proves_nothing() -> None:
    assert [("0 rows; it had not begun", False), ("500 rows", True)] == said(Sinks([0], [500]).struck())


def test_a_load_that_was_over_before_the_other_began_proves_nothing_and_is_not_waited_for() -> None:
    sinks = Sinks([1000], [0])

    assert [("1,000 rows; it was over", False), ("0 rows; it had not begun", False)] == said(sinks.struck())
    assert 4 == sinks.looks


def test_what_counts_is_what_the_sink_holds_when_it_is_struck() -> None:
    assert [("950 rows; it was over", False), ("1 rows", True)] == said(Sinks([400, 950], [1]).struck())


def test_rows_that_deletes_may_have_left_of_a_load_do_not_count() -> None:
    assert [False, True] == [held for _, held in said(Sinks([900], [300]).struck())]


def test_a_sink_that_cannot_be_read_yet_is_waited_for() -> None:
    assert [True, True] == [held for _, held in said(Sinks([400], [1], refusals=1).struck())]


def test_a_sink_that_cannot_be_read_when_it_is_struck_proves_nothing() -> None:
    checks = Sinks([400], [1], refusals=1_000_000).struck()

    assert [False, False] == [check.held for check in checks]
    assert "its rows could not be counted: no such table yet" == checks[0].actual
