"""The workload: its ledger equals what the source committed, whatever becomes of the connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fake_mysql import COLUMNS, FakeConnection, FakeServer, Row

from harness.errors import SourceError, WaitTimeout
from harness.ledger import state_after
from harness.source.orders import MARKER_PARTITION
from harness.source.pace import BURST_S, Pace
from harness.source.workload import OrdersWorkload
from harness.waiting import wait_until

INITIAL_PACKETS = 1


def workload(server: FakeServer, *, rate: int | None = 20_000, seed: int = 5, bound_s: float = 5) -> Any:
    # The fake stands in for pymysql's connection as far as the workload uses it.
    connect: Any = server.connect
    return OrdersWorkload(connect=connect, seed=seed, rate=rate, initial_rows=100, bound_s=bound_s)


def started(server: FakeServer, **options: Any) -> Any:
    made = workload(server, **options)
    made.prepare()
    made.start()
    return made


def until_committed(made: Any, operations: int) -> None:
    wait_until("operations", lambda: made.committed() >= operations, timeout_s=20, every_s=0.005)


def until_ended(made: Any) -> None:
    def refused() -> bool:
        try:
            made.resume()
        except SourceError:
            return True
        return False

    wait_until("the workload to end", refused, timeout_s=20, every_s=0.01)


def literals(entry: dict[str, Any]) -> Row:
    def text(value: Any) -> str:
        if hasattr(value, "isoformat"):
            return f"'{value.isoformat(sep=' ', timespec='milliseconds')}'"
        return f"'{value}'" if isinstance(value, str) else str(value)

    return tuple(text(entry[name]) for name in COLUMNS)


def changes(made: Any) -> list[tuple[str, Row]]:
    return [(entry["kind"], literals(entry)) for entry in made.ledger().to_pylist()]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.commit_gate.set()


def test_the_ledger_is_the_binlog_operation_by_operation(server: FakeServer) -> None:
    made = started(server)
    until_committed(made, 3000)
    outcome = made.stop()

    assert changes(made) == server.binlog
    assert (outcome.error, outcome.unresolved, outcome.reconnects) == ("", (), 0)
    assert (outcome.operations, outcome.transactions) == (len(server.binlog), server.number)


def test_at_every_fence_the_state_after_the_marker_is_the_source(server: FakeServer) -> None:
    made = started(server)
    for number in (1, 2, 3):
        until_committed(made, 500 * number)
        mark = made.fence()
        state = state_after(made.ledger(), mark.operation, key="order_id")

        assert {row[0]: row for row in map(literals, state.to_pylist())} == server.rows
        assert (mark.number, mark.key, mark.partition) == (number, -number, MARKER_PARTITION)
        assert made.ledger().to_pylist()[-1]["order_id"] == -number
        assert mark.operation == made.committed()
        made.resume()

    assert made.stop().error == ""


def test_nothing_is_committed_between_fence_and_resume(server: FakeServer) -> None:
    made = started(server)
    made.fence()
    packets = server.packets
    second = made.fence()

    assert server.packets == packets + 1
    assert second.number == 2
    made.resume()
    until_committed(made, second.operation + 100)
    made.stop()


def test_the_same_seed_gives_the_same_ledger_but_for_commit_times(server: FakeServer) -> None:
    ledgers = []
    for source in (server, FakeServer()):
        made = started(source)
        until_committed(made, 1000)
        made.stop()
        ledgers.append(made.ledger().drop_columns(["committed_at_ms"]).slice(0, 1000))

    assert ledgers[0] == ledgers[1]


@pytest.mark.parametrize("place", ["before", "executed", "committed"])
def test_a_lost_connection_leaves_every_transaction_committed_exactly_once(place: str) -> None:
    server = FakeServer(losses={INITIAL_PACKETS + n: place for n in (1, 4, 5, 9, 30)})
    made = started(server)
    until_committed(made, 1000)
    outcome = made.stop()

    assert changes(made) == server.binlog
    assert (outcome.error, outcome.unresolved, outcome.reconnects) == ("", (), 5)
    assert outcome.transactions == server.number
    assert len(server.killed) == 5


def test_a_connection_lost_while_preparing_is_resolved_too() -> None:
    server = FakeServer(losses={1: "committed"})
    made = workload(server)
    made.prepare()

    assert changes(made) == server.binlog
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
    assert changes(made) == server.binlog


def test_other_rows_changed_than_expected_end_the_workload_rolled_back(server: FakeServer) -> None:
    made = workload(server)
    made.prepare()
    server.rows.clear()
    made.start()
    until_ended(made)
    outcome = made.stop()

    assert "expected 1 rows changed, got 0" in outcome.error
    assert outcome.unresolved == ()
    assert changes(made) == server.binlog


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
    with pytest.raises(WaitTimeout, match=r"waited 0 s for the marker of fence 1 .* in flight: \d+"):
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
