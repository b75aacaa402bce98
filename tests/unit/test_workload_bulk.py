"""What a workload does beside its stream: a bulk update, and probes before its first rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_mysql import FakeServer
from workloads import logged, recorded, started, until_committed, workload

from harness.errors import SourceError


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.commit_gate.set()


def test_a_bulk_update_is_one_transaction_between_two_markers_and_the_ledger_is_its_binlog(
    server: FakeServer,
) -> None:
    made = started(server)
    until_committed(made, 1000)
    marks = made.bulk_update()
    entries = made.ledger("orders").slice(marks.begin.operation - 1).to_pylist()
    made.resume()
    until_committed(made, made.committed() + 500)
    second = made.bulk_update()
    outcome = made.stop()

    assert recorded(made) == logged(server)
    assert len({entry["transaction"] for entry in entries}) == 1
    assert (marks.begin.key, marks.end.key) == (entries[0]["order_id"], entries[-1]["order_id"])
    assert marks.end.operation - marks.begin.operation + 1 == len(entries) > 50
    assert {entry["kind"] for entry in entries[1:-1]} == {"update"}
    assert all(entry["order_id"] > 0 for entry in entries[1:-1])
    assert len({mark.key for each in (marks, second) for mark in (each.begin, each.end)}) == 4
    assert outcome.error == ""


@pytest.mark.parametrize("place", ["before", "executed", "committed"])
def test_a_bulk_update_whose_connection_is_lost_is_committed_once(place: str) -> None:
    server = FakeServer()
    made = started(server)
    made.fence()
    server.losses = {server.packets + 1: place}
    made.bulk_update()

    assert made.stop().reconnects == 1
    assert recorded(made) == logged(server)


def test_nothing_is_committed_after_a_bulk_update_until_resume_but_fences(server: FakeServer) -> None:
    made = started(server)
    made.bulk_update()
    packets = server.packets
    (mark, _) = made.fence()

    assert server.packets == packets + 1
    assert mark.number == 1
    made.resume()
    until_committed(made, made.committed() + 100)
    assert made.stop().error == ""


def test_a_table_that_is_only_inserted_into_gets_no_bulk_update_and_no_probe(server: FakeServer) -> None:
    made = started(server, tables=("behavior-log",))
    with pytest.raises(SourceError, match="no bulk update: rows of behavior-log can't be changed"):
        made.bulk_update()
    made.stop()
    later = workload(FakeServer(), rows_later=True)
    later.prepare()
    with pytest.raises(SourceError, match="no probe: rows of behavior-log can't be deleted again"):
        later.probe()


def test_rows_that_come_later_come_after_probes_which_are_deleted_first(server: FakeServer) -> None:
    made = workload(server, tables=("orders",), rows_later=True)
    made.prepare()
    assert server.binlog == []
    (first,), (second,) = made.probe(), made.probe()
    probed = dict(server.rows["shop.source_orders"])
    made.fill()
    filled = len(server.rows["shop.source_orders"])
    made.start()
    until_committed(made, 500)
    made.stop()

    assert [str(first.key), str(second.key)] == list(probed)
    assert (first.operation, second.operation, first.number) == (1, 2, 0)
    assert filled == 100
    assert recorded(made, tables=("orders",)) == logged(server, tables=("orders",))
    kinds = [kind for kind, _ in server.changes("shop.source_orders")[:5]]
    assert kinds == ["insert", "insert", "delete", "delete", "insert"]


def test_there_is_an_order_of_preparing_probing_filling_and_starting(server: FakeServer) -> None:
    made = workload(server, tables=("orders",), rows_later=True)
    with pytest.raises(SourceError, match="no probe: the workload was not prepared"):
        made.probe()
    made.prepare()
    with pytest.raises(SourceError, match="can't start"):
        made.start()
    made.fill()
    with pytest.raises(SourceError, match=r"no probe: .* has its first rows already"):
        made.probe()
    with pytest.raises(SourceError, match="no first rows"):
        made.fill()
