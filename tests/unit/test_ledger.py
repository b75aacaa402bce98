"""The ledger: what it records, and the state of the source after any operation."""

from __future__ import annotations

import random
import threading

import pyarrow as pa
import pytest

from harness.ledger import OPERATION_SCHEMA, Ledger, Operation, Row, schema_for, state_after

T0 = 1_783_332_000_000

ROW_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("user", pa.int64()),
        ("amount", pa.decimal128(18, 2)),
        ("status", pa.int8()),
        ("time", pa.timestamp("ms")),
        ("dt", pa.string()),
    ]
)


def row(key: int, *, user: int = 1, cents: int = 100, dt: str = "2026-07-06") -> Row:
    return (key, user, cents, 1, T0 + 7, dt)


def ledger_of(*transactions: list[Operation]) -> Ledger:
    ledger = Ledger(ROW_SCHEMA)
    for number, operations in enumerate(transactions, start=1):
        ledger.append(operations, transaction=number, committed_at_ms=T0 + number)
    return ledger


def random_ledger(seed: int, operations: int) -> pa.Table:
    """Any legal sequence over few keys, so that keys are deleted and come back often."""
    rng = random.Random(seed)
    live: dict[int, Row] = {}
    ledger = Ledger(ROW_SCHEMA)
    for number in range(1, operations + 1):
        key = rng.randint(-3, 12)
        fresh = row(key, user=rng.randint(1, 3), cents=rng.randint(-500, 10**15), dt=rng.choice("abc"))
        if key not in live:
            kind, live[key] = "insert", fresh
        elif rng.random() < 0.5:
            kind, fresh = "delete", live.pop(key)
        else:
            kind, live[key] = "update", fresh
        ledger.append([Operation(kind, fresh)], transaction=number, committed_at_ms=T0)
    return ledger.table()


def replay(ledger: pa.Table, operation: int) -> list[dict[str, object]]:
    """The state by brute force: one operation after another over a dict."""
    state: dict[object, dict[str, object]] = {}
    for entry in ledger.to_pylist()[:operation]:
        values = {name: entry[name] for name in ROW_SCHEMA.names}
        if entry["kind"] == "delete":
            assert state.pop(entry["id"]) == values
        else:
            state[entry["id"]] = values
    return [state[key] for key in sorted(state)]


@pytest.mark.parametrize("seed", range(5))
def test_the_state_after_any_operation_equals_a_replay_one_by_one(seed: int) -> None:
    ledger = random_ledger(seed, 60)

    for operation in range(ledger.num_rows + 1):
        state = state_after(ledger, operation, key="id")

        assert state.to_pylist() == replay(ledger, operation)
        assert state.schema == ROW_SCHEMA


def test_text_keys_have_states_too_sorted_by_their_bytes() -> None:
    schema = pa.schema([("key", pa.string()), ("value", pa.int64())])
    ledger = Ledger(schema)
    inserts = [Operation("insert", (key, len(key))) for key in ("l-2", "marker-1", "l-10", "L-3", "é")]
    ledger.append([*inserts, Operation("update", ("l-2", 7))], transaction=1, committed_at_ms=T0)
    ledger.append([Operation("delete", ("marker-1", 8))], transaction=2, committed_at_ms=T0)
    before, after = (state_after(ledger.table(), operation, key="key") for operation in (6, 7))

    assert before.column("key").to_pylist() == ["L-3", "l-10", "l-2", "marker-1", "é"]
    assert after.to_pydict() == {"key": ["L-3", "l-10", "l-2", "é"], "value": [3, 4, 7, 1]}
    assert after.schema == schema


def test_the_columns_are_those_of_the_operation_and_then_those_of_the_row() -> None:
    assert schema_for(ROW_SCHEMA).names == [*OPERATION_SCHEMA.names, *ROW_SCHEMA.names]


@pytest.mark.parametrize("short", [True, False])
def test_a_row_that_does_not_fit_the_columns_is_an_error_not_a_shifted_row(short: bool) -> None:
    ledger = ledger_of([Operation("insert", row(1)[:-1] if short else (*row(1), "more"))])

    with pytest.raises(ValueError, match="zip"):
        ledger.table()


def test_operations_are_numbered_densely_from_one_across_transactions_and_sealed_batches() -> None:
    ledger = Ledger(ROW_SCHEMA)
    for number in range(1, 9001):
        ledger.append(
            [Operation("insert", row(2 * number)), Operation("insert", row(2 * number + 1))],
            transaction=number,
            committed_at_ms=T0,
        )
    table = ledger.table()

    assert table.column("operation").to_pylist() == list(range(1, 18_001))
    assert table.column("transaction").to_pylist()[-3:] == [8999, 9000, 9000]
    assert len(ledger) == 18_000


def test_rows_are_kept_in_the_types_of_the_source() -> None:
    table = ledger_of([Operation("update", row(5, cents=-12_345_678_901_234_567))]).table()
    (entry,) = table.to_pylist()

    assert table.schema == schema_for(ROW_SCHEMA)
    assert str(entry["amount"]) == "-123456789012345.67"
    assert str(entry["time"]) == "2026-07-06 10:00:00.007000"
    assert (entry["kind"], entry["committed_at_ms"]) == ("update", T0 + 1)


def test_an_empty_ledger_has_the_schema_and_the_empty_state() -> None:
    table = Ledger(ROW_SCHEMA).table()

    assert table.schema == schema_for(ROW_SCHEMA)
    assert state_after(table, 0, key="id").num_rows == 0


def test_a_table_taken_before_does_not_change_with_later_operations() -> None:
    ledger = ledger_of([Operation("insert", row(1))])
    table = ledger.table()
    ledger.append([Operation("insert", row(2))], transaction=2, committed_at_ms=T0)

    assert table.num_rows == 1


def test_a_table_taken_by_another_thread_holds_whole_transactions_only() -> None:
    ledger = Ledger(ROW_SCHEMA)
    sizes: list[int] = []

    def append() -> None:
        for number in range(1, 4001):
            operations = [Operation("insert", row(7 * number + place)) for place in range(7)]
            ledger.append(operations, transaction=number, committed_at_ms=T0)

    thread = threading.Thread(target=append)
    thread.start()
    while thread.is_alive():
        sizes.append(ledger.table().num_rows)
    thread.join()

    assert [size % 7 for size in sizes] == [0] * len(sizes)
    assert ledger.table().num_rows == 28_000


@pytest.mark.parametrize("operation", [-1, 2])
def test_a_state_that_the_ledger_does_not_reach_is_an_error(operation: int) -> None:
    table = ledger_of([Operation("insert", row(1))]).table()

    with pytest.raises(ValueError, match=f"operations 1 to 1; state after {operation} unknown"):
        state_after(table, operation, key="id")
