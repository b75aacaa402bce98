"""The workload: its ledger equals what the source committed, whatever becomes of the connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_mysql import FakeConnection, FakeServer
from workloads import (
    BOTH,
    INITIAL_PACKETS,
    literals,
    logged,
    operations_of,
    recorded,
    started,
    until_committed,
    until_ended,
    until_recorded,
    workload,
)

from harness.errors import SourceError, WaitTimeout
from harness.ledger import state_after
from harness.source.days import MARKER_PARTITION
from harness.source.pace import BURST_S, Pace
from harness.source.templates import TEMPLATES


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.commit_gate.set()


def test_the_ledgers_of_both_tables_are_the_binlog_operation_by_operation(server: FakeServer) -> None:
    made = started(server)
    until_committed(made, 3000)
    outcome = made.stop()

    assert recorded(made) == logged(server)
    assert (outcome.error, outcome.unresolved, outcome.reconnects) == ("", (), 0)
    assert (outcome.operations, outcome.transactions) == (len(server.binlog), server.number)


@pytest.mark.parametrize("tables", [BOTH, ("orders",), ("behavior-log",)])
def test_at_every_fence_the_state_after_the_marker_is_the_source(
    server: FakeServer, tables: tuple[str, ...]
) -> None:
    made = started(server, tables=tables)
    for number in (1, 2, 3):
        until_committed(made, 500 * number)
        marks = made.fence()

        assert [mark.table for mark in marks] == list(tables)
        assert sum(mark.operation for mark in marks) == made.committed()
        for mark in marks:
            contract = TEMPLATES[mark.table].contract
            ledger = made.ledger(mark.table)
            state = state_after(ledger, mark.operation, key=contract.source_key).to_pylist()
            last = ledger.to_pylist()[-1]
            key = -number if mark.table == "orders" else f"marker-{number}"

            source = server.rows[contract.source]
            assert source == {row[0]: row for row in (literals(mark.table, entry) for entry in state)}
            assert (mark.number, mark.key, mark.partition) == (number, key, MARKER_PARTITION)
            assert (mark.key, mark.operation) == (last[contract.source_key], last["operation"])
        made.resume()

    assert made.stop().error == ""


def test_the_markers_of_all_tables_are_one_transaction_of_their_own(server: FakeServer) -> None:
    made = started(server)
    until_committed(made, 500)
    made.fence()
    entries = [entry for entry in server.binlog if entry[0] == server.number]

    assert [(table, kind) for _, table, kind, _ in entries] == [
        ("shop.source_orders", "insert"),
        ("shop.behavior_log", "insert"),
    ]
    assert [row[0] for *_, row in entries] == ["-1", "'marker-1'"]
    assert {made.ledger(table).to_pylist()[-1]["transaction"] for table in BOTH} == {server.number}
    made.stop()


@pytest.mark.parametrize("place", ["before", "executed", "committed"])
def test_markers_whose_connection_is_lost_are_committed_once_in_all_tables_together(place: str) -> None:
    server = FakeServer()
    made = started(server)
    made.fence()
    server.losses = {server.packets + 1: place}
    marks = made.fence()
    written = [(number, row[0]) for number, _, _, row in server.binlog if row[0] in ("-2", "'marker-2'")]

    assert written == [(server.number, "-2"), (server.number, "'marker-2'")]
    assert [mark.number for mark in marks] == [2, 2]
    assert made.stop().reconnects == 1
    assert recorded(made) == logged(server)


def test_nothing_is_committed_between_fence_and_resume(server: FakeServer) -> None:
    made = started(server)
    made.fence()
    packets = server.packets
    second = made.fence()

    assert server.packets == packets + 1
    assert {mark.number for mark in second} == {2}
    made.resume()
    until_committed(made, made.committed() + 100)
    made.stop()


def test_the_same_seed_gives_the_same_ledgers_but_for_commit_times(server: FakeServer) -> None:
    ledgers = []
    for source in (server, FakeServer()):
        made = started(source)
        until_recorded(made, "behavior-log", 400)
        made.stop()
        ledgers.append([made.ledger(table).drop_columns(["committed_at_ms"]).slice(0, 400) for table in BOTH])

    assert ledgers[0] == ledgers[1]
    assert [ledger.num_rows for ledger in ledgers[0]] == [400, 400]


@pytest.mark.parametrize("rate", [20_000, None])
@pytest.mark.parametrize("table", BOTH)
def test_a_table_has_the_same_operations_with_and_without_the_other(table: str, rate: int | None) -> None:
    operations = []
    for tables in (BOTH, (table,)):
        made = started(FakeServer(), tables=tables, rate=rate)
        until_recorded(made, table, 700)
        made.stop()
        operations.append(operations_of(made, table)[:700])

    assert operations[0] == operations[1]
    assert len(operations[0]) == 700


@pytest.mark.parametrize("rate", [20_000, None])
def test_about_three_of_ten_changes_are_of_the_log(server: FakeServer, rate: int | None) -> None:
    made = started(server, rate=rate)
    until_committed(made, 20_000)
    made.stop()
    share = (made.ledger("behavior-log").num_rows - 100) / (made.committed() - 200)

    assert 0.27 < share < 0.33


def test_every_transaction_inserts_into_the_log(
    server: FakeServer,
) -> None:
    made = started(server)
    until_committed(made, 2000)
    outcome = made.stop()
    numbers = set(made.ledger("behavior-log").column("transaction").to_pylist())

    assert numbers == set(range(2, outcome.transactions + 1))  # the first holds the first orders


def test_the_log_is_only_inserted_into(server: FakeServer) -> None:
    made = started(server)
    until_committed(made, 2000)
    made.stop()

    assert {kind for kind, _ in server.changes("shop.behavior_log")} == {"insert"}
    assert {kind for kind, _ in server.changes("shop.source_orders")} == {"insert", "update", "delete"}


def test_the_rate_counts_the_changes_of_all_tables(server: FakeServer) -> None:
    made = started(server, rate=400)
    until_committed(made, 200 + 600)
    outcome = made.stop()

    # A slow machine may fall behind the rate, but the rate is never exceeded by more than a transaction.
    assert outcome.operations - 200 <= 400 * outcome.seconds + 28


@pytest.mark.parametrize("tables", [(), ("orders", "clicks")])
def test_tables_without_a_template_are_refused(server: FakeServer, tables: tuple[str, ...]) -> None:
    with pytest.raises(SourceError, match=r"needs tables to write to, got (none|clicks)"):
        workload(server, tables=tables)


@pytest.mark.parametrize("place", ["before", "executed", "committed"])
def test_a_lost_connection_leaves_every_transaction_committed_exactly_once(place: str) -> None:
    server = FakeServer(losses={INITIAL_PACKETS + n: place for n in (1, 4, 5, 9, 30)})
    made = started(server)
    until_committed(made, 1000)
    outcome = made.stop()

    assert recorded(made) == logged(server)
    assert (outcome.error, outcome.unresolved, outcome.reconnects) == ("", (), 5)
    assert outcome.transactions == server.number
    assert len(server.killed) == 5


def test_a_connection_lost_while_preparing_is_resolved_too() -> None:
    server = FakeServer(losses={2: "committed"})
    made = workload(server)
    made.prepare()

    assert recorded(made) == logged(server)
    assert made.stop().reconnects == 1


def test_a_commit_that_cannot_be_asked_for_is_unresolved() -> None:
    server = FakeServer(losses={5: "committed"})
    server.after_loss = lambda: setattr(server, "reachable", False)
    made = started(server, bound_s=0.3)
    until_ended(made)
    outcome = made.stop()

    assert outcome.unresolved == (5,)
    assert "transaction 5 is committed" in outcome.error
    assert outcome.transactions == 4


def test_a_number_that_is_not_ours_is_unresolved() -> None:
    server = FakeServer(losses={5: "before"})
    server.after_loss = lambda: setattr(server, "number", 77)
    made = started(server)
    until_ended(made)
    outcome = made.stop()

    assert outcome.unresolved == (5,)
    assert "says 77" in outcome.error


def test_a_stranger_with_the_id_of_the_lost_connection_is_not_killed() -> None:
    server = FakeServer(losses={5: "before"})
    strangers: list[FakeConnection] = []

    def restart() -> None:
        server.restart()
        strangers.append(server.connect())

    server.after_loss = restart
    made = started(server)
    until_committed(made, 300)

    assert made.stop().error == ""
    assert (server.killed, len(strangers)) == ([], 1)
    assert recorded(made) == logged(server)


def test_other_rows_changed_than_expected_end_the_workload_rolled_back(server: FakeServer) -> None:
    made = workload(server)
    made.prepare()
    server.rows["shop.source_orders"].clear()
    made.start()
    until_ended(made)
    outcome = made.stop()

    assert "expected 1 rows changed, got 0" in outcome.error
    assert outcome.unresolved == ()
    assert recorded(made) == logged(server)


def test_the_death_of_the_workload_is_told_at_the_next_fence() -> None:
    server = FakeServer(losses={3: "before"})
    server.after_loss = lambda: setattr(server, "reachable", False)
    made = started(server, bound_s=0.3)
    with pytest.raises(SourceError, match="no fence: the workload ended with"):
        # The first may come before the loss.
        [made.fence() for _ in range(5)]

    assert made.stop().error


def test_a_fence_that_does_not_come_says_what_it_waited_for(server: FakeServer) -> None:
    made = started(server, bound_s=0.1)
    server.commit_gate.clear()
    with pytest.raises(WaitTimeout, match=r"waited 0 s for the markers of fence 1 .* in flight: \d+"):
        made.fence()
    outcome = made.stop()

    assert len(outcome.unresolved) == 1
    assert outcome.error.startswith("the workload did not stop")


def test_stop_is_idempotent_and_final(server: FakeServer) -> None:
    made = started(server)
    outcome = made.stop()

    assert made.stop() == outcome
    assert server.sessions == {}
    with pytest.raises(SourceError, match="no resume"):
        made.resume()
    with pytest.raises(SourceError, match="can't start"):
        made.start()


def test_a_workload_that_never_started_stops_too(server: FakeServer) -> None:
    outcome = workload(server).stop()

    assert (outcome.operations, outcome.seconds, outcome.error) == (0, 0.0, "")


def test_a_connection_that_counts_matched_rows_is_refused(server: FakeServer) -> None:
    server.client_flag |= 2
    with pytest.raises(SourceError, match="not FOUND_ROWS"):
        workload(server).prepare()


def test_the_pace_keeps_the_average_and_bounds_what_it_catches_up() -> None:
    clock = [100.0]
    pace = Pace(1000, now=lambda: clock[0])

    assert pace.delay_s(50) == pytest.approx(0.05)
    clock[0] += 0.08  # woke up 30 ms late
    assert pace.delay_s(50) == pytest.approx(0.02)
    clock[0] += 60  # an outage
    assert pace.delay_s(0) == 0
    assert pace.delay_s(round(1000 * BURST_S) + 10) == pytest.approx(0.01)
    pace.restart()
    assert pace.delay_s(10) == pytest.approx(0.01)


def test_flat_out_has_no_delay() -> None:
    assert Pace(None).delay_s(10**6) == 0
