"""The stream of orders: reproducible, legal, and with every kind of change in it."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.ledger import Operation
from harness.source.days import PARTITIONS
from harness.source.orders import CONTRACT, DDL, OrderRow, OrderStream
from harness.source.stream import Statement


def transactions(*, seed: int = 1, count: int = 400, largest: int = 20) -> list[tuple[Statement, ...]]:
    stream = OrderStream(seed=seed, largest=largest)
    return [*stream.initial(300), *(stream.transaction() for _ in range(count))]


def operations(stream: list[tuple[Statement, ...]]) -> list[Operation]:
    return [
        operation for statements in stream for statement in statements for operation in statement.operations
    ]


def test_the_same_seed_gives_the_same_statements_and_operations() -> None:
    assert transactions(seed=7) == transactions(seed=7)


def test_another_seed_gives_others() -> None:
    assert transactions(seed=7) != transactions(seed=8)


def test_a_marker_changes_nothing_of_what_follows() -> None:
    plain, fenced = OrderStream(seed=3, largest=20), OrderStream(seed=3, largest=20)
    for _ in range(50):
        plain.transaction()
        fenced.transaction()
    marker = fenced.marker(1)

    assert [plain.transaction() for _ in range(50)] == [fenced.transaction() for _ in range(50)]
    assert marker.operations[0].row[:3] == (-1, 0, 0)
    assert marker.operations[0].row.dt in PARTITIONS


def test_a_bulk_update_changes_every_order_in_the_order_of_the_keys_and_no_marker() -> None:
    stream = OrderStream(seed=3, largest=20)
    made = [*stream.initial(200), *(stream.transaction() for _ in range(200)), (stream.marker(1),)]
    live: dict[int, OrderRow] = {}
    for kind, row in operations(made):
        live.pop(row.order_id, None)
        if kind != "delete":
            live[row.order_id] = row
    keys = sorted(key for key in live if key > 0)
    assert keys != [key for key in live if key > 0]  # else this test would show less

    bulk = stream.bulk_update()

    assert {"update"} == {kind for kind, _ in bulk.operations}
    assert keys == [row.order_id for _, row in bulk.operations]
    assert len(keys) == bulk.changed
    assert all(live[row.order_id].order_status != row.order_status < 6 for _, row in bulk.operations)
    assert all(
        live[row.order_id]._replace(order_status=row.order_status, update_ms=row.update_ms) == row
        for _, row in bulk.operations
    )


def test_after_a_bulk_update_every_operation_is_still_legal_where_it_stands() -> None:
    stream = OrderStream(seed=3, largest=20)
    made = [*stream.initial(200), *(stream.transaction() for _ in range(100))]
    made += [(stream.bulk_update(),), *(stream.transaction() for _ in range(400))]

    live: dict[int, OrderRow] = {}
    for kind, row in operations(made):
        if kind == "delete":
            assert live.pop(row.order_id) == row
        else:
            assert (kind == "update") == (row.order_id in live)
            assert live.get(row.order_id) != row
            live[row.order_id] = row


def test_a_withdrawn_marker_is_deleted_as_it_was_inserted() -> None:
    stream = OrderStream(seed=3, largest=20)
    marker = stream.marker(7)
    withdrawn = stream.withdraw(marker)

    assert ("DELETE FROM shop.source_orders WHERE order_id = -7", 1) == withdrawn[:2]
    assert [("delete", marker.operations[0].row)] == [tuple(each) for each in withdrawn.operations]


@pytest.mark.parametrize("largest", [1, 2, 20, 200])
def test_a_transaction_has_one_to_the_largest_number_of_operations(largest: int) -> None:
    sizes = [
        sum(len(statement.operations) for statement in statements)
        for statements in transactions(largest=largest)[1:]
    ]

    assert min(sizes) >= 1
    assert max(sizes) <= largest


def test_every_operation_is_legal_where_it_stands() -> None:
    live: dict[int, OrderRow] = {}
    for kind, row in operations(transactions()):
        if kind == "insert":
            assert row.order_id not in live
            live[row.order_id] = row
        elif kind == "update":
            assert live[row.order_id] != row
            live[row.order_id] = row
        else:
            assert live.pop(row.order_id) == row


def test_every_kind_of_change_occurs() -> None:
    seen: Counter[str] = Counter()
    live: dict[int, OrderRow] = {}
    deleted_in: dict[int, int] = {}
    for number, statements in enumerate(transactions()):
        for statement in statements:
            kinds = [kind for kind, _ in statement.operations]
            seen["same values"] += not kinds
            seen["several rows in one insert"] += kinds.count("insert") > 1
            seen["change of the key"] += kinds == ["delete", "insert"]
            for kind, row in statement.operations:
                seen[kind] += 1
                if kind == "update":
                    seen["move to another partition"] += live[row.order_id].dt != row.dt
                if kind == "insert" and row.order_id in deleted_in:
                    same = deleted_in[row.order_id] == number
                    seen["back in the same transaction" if same else "back in a later transaction"] += 1
                if kind == "delete":
                    deleted_in[row.order_id] = number
                live[row.order_id] = row

    assert min(seen.values()) >= 10, seen
    assert len(seen) == 9


def test_a_same_value_update_expects_no_changed_row_and_no_operation() -> None:
    same = [s for statements in transactions() for s in statements if not s.operations]

    assert {statement.changed for statement in same} == {0}


def test_recent_orders_are_updated_most() -> None:
    newest, ages = 0, []
    for kind, row in operations(transactions(count=2000)):
        newest = max(newest, row.order_id)
        if kind == "update":
            ages.append((newest - row.order_id) / newest)
    ages.sort()

    assert ages[len(ages) // 2] < 0.2
    assert ages[-1] > 0.8


def test_the_contract_names_the_columns_of_the_table_in_its_order() -> None:
    columns = [line.split()[0] for line in DDL.splitlines() if line.startswith("  ")]

    assert columns == list(CONTRACT.columns)
