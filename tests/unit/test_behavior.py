"""The stream of the behavior log: reproducible, insert-only, and mostly of today."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from harness.source.behavior import CONTRACT, DDL, EVENT_TYPES, BehaviorStream, LogRow
from harness.source.days import MARKER_PARTITION, PARTITIONS, TODAY
from harness.source.stream import INITIAL_BATCH, Statement


def transactions(*, seed: int = 1, count: int = 400, largest: int = 8) -> list[tuple[Statement, ...]]:
    stream = BehaviorStream(seed=seed, largest=largest)
    return [*stream.initial(300), *(stream.transaction() for _ in range(count))]


def rows(stream: list[tuple[Statement, ...]]) -> list[LogRow]:
    return [
        LogRow(*operation.row)
        for statements in stream
        for statement in statements
        for operation in statement.operations
    ]


def test_the_same_seed_gives_the_same_statements_and_operations() -> None:
    assert transactions(seed=7) == transactions(seed=7)


def test_another_seed_gives_others() -> None:
    assert transactions(seed=7) != transactions(seed=8)


def test_rows_are_inserted_once_and_never_updated_or_deleted() -> None:
    made = transactions()
    kinds = {operation.kind for statements in made for s in statements for operation in s.operations}
    keys = [row.log_id for row in rows(made)]

    assert kinds == {"insert"}
    assert {s.text.split()[0] for statements in made for s in statements} == {"INSERT"}
    assert keys == [f"l-{number:09d}" for number in range(1, len(keys) + 1)]


def test_a_statement_must_insert_all_its_rows() -> None:
    for statements in transactions():
        for statement in statements:
            assert statement.changed == len(statement.operations) == statement.text.count("('l-")


def test_a_marker_changes_nothing_of_what_follows() -> None:
    plain, fenced = BehaviorStream(seed=3, largest=8), BehaviorStream(seed=3, largest=8)
    for _ in range(50):
        plain.transaction()
        fenced.transaction()
    ((kind, row),) = fenced.marker(12).operations

    assert [plain.transaction() for _ in range(50)] == [fenced.transaction() for _ in range(50)]
    assert (kind, row[:3], row[4]) == ("insert", ("marker-12", 0, "marker"), MARKER_PARTITION)


@pytest.mark.parametrize("largest", [1, 2, 8, 85])
def test_a_transaction_inserts_one_to_the_largest_number_of_rows_in_a_few_statements(largest: int) -> None:
    made = transactions(largest=largest)[1:]
    sizes = Counter(len(rows([statements])) for statements in made)
    statements = sum(len(statements) for statements in made) / len(made)

    assert (min(sizes), max(sizes)) == (1, largest)
    assert 1 <= statements <= 4


def test_the_clock_goes_forward_by_transactions_and_events_are_of_all_types() -> None:
    made = transactions()
    times = [{row.event_ms for row in rows([statements])} for statements in made[1:]]

    assert {len(of_one) for of_one in times} == {1}
    assert all(1 <= max(later) - max(earlier) <= 9 for earlier, later in pairwise(times))
    assert max(row.event_ms for row in rows(made[:1])) < min(times[0])
    assert {row.event_type for row in rows(made)} == set(EVENT_TYPES)


def test_later_rows_are_mostly_of_today_and_the_first_of_all_days() -> None:
    made = transactions(count=4000)
    days = Counter(row.dt for row in rows(made[1:]))

    assert {row.dt for row in rows(made[:1])} == set(PARTITIONS)
    assert days[TODAY] > 0.99 * days.total()
    assert set(days) == set(PARTITIONS)


def test_the_first_rows_come_in_large_transactions_and_all_of_them() -> None:
    made = list(BehaviorStream(seed=1, largest=8).initial(2 * INITIAL_BATCH + 1))

    assert [len(rows([statements])) for statements in made] == [INITIAL_BATCH, INITIAL_BATCH, 1]


def test_the_contract_names_the_columns_of_the_table_in_its_order() -> None:
    columns = [line.split()[0] for line in DDL.splitlines() if line.startswith("  ")]

    assert columns == list(CONTRACT.columns)
