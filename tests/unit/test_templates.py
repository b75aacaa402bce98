"""The table templates: each fits its contract, and has the rows that its stream makes."""

from __future__ import annotations

import pytest

from harness.ledger import Ledger
from harness.source.templates import TEMPLATES


def test_the_templates_are_the_guides_two_tables() -> None:
    assert [(name, t.contract.append_only) for name, t in TEMPLATES.items()] == [
        ("orders", False),
        ("behavior-log", True),
    ]


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_contract_fits_the_columns_of_the_template(name: str) -> None:
    template = TEMPLATES[name]
    contract = template.contract

    assert contract.name == name
    assert template.row_schema.names == list(contract.columns)
    assert {contract.source_key, contract.partition, contract.amount, contract.time} <= set(contract.columns)
    assert f"CREATE TABLE {contract.source} (" in template.ddl


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_rows_of_a_templates_stream_fit_its_ledger(name: str) -> None:
    template = TEMPLATES[name]
    stream = template.make_stream(seed=1, largest=20)
    ledger = Ledger(template.row_schema)
    made = [*stream.initial(50), *(stream.transaction() for _ in range(50)), (stream.marker(1),)]
    for statements in made:
        for statement in statements:
            ledger.append(statement.operations, transaction=1, committed_at_ms=0)
    table = ledger.table()

    table.validate(full=True)
    assert table.num_rows == len(ledger) > 100
    assert table.column(template.contract.amount).null_count == 0


def test_tables_share_no_draw_of_a_seed() -> None:
    firsts = set()
    for template in TEMPLATES.values():
        ((first,),) = template.make_stream(seed=1, largest=20).initial(1)
        values = dict(zip(template.contract.columns, first.operations[0].row, strict=True))
        firsts.add((values["user_id"], values[template.contract.time]))

    assert len(firsts) == len(TEMPLATES)
