"""The table templates of guide §3.3 by name: what is needed to fill and compare each of the two tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from harness.model import TableContract
from harness.source import behavior, orders
from harness.source.stream import Stream


class MakeStream(Protocol):
    """Makes a table's stream. `largest` is the most operations that its transactions may have."""

    def __call__(self, *, seed: int, largest: int) -> Stream: ...


@dataclass(frozen=True, kw_only=True)
class Template:
    """A table of the source and its stream.

    `share` is how many of ten row changes are the table's when all templates are written to.
    """

    contract: TableContract
    row_schema: pa.Schema
    ddl: str
    share: int
    make_stream: MakeStream


TEMPLATES: dict[str, Template] = {
    template.contract.name: template
    for template in (
        Template(
            contract=orders.CONTRACT,
            row_schema=orders.ROW_SCHEMA,
            ddl=orders.DDL,
            share=7,
            make_stream=orders.OrderStream,
        ),
        Template(
            contract=behavior.CONTRACT,
            row_schema=behavior.ROW_SCHEMA,
            ddl=behavior.DDL,
            share=3,
            make_stream=behavior.BehaviorStream,
        ),
    )
}
