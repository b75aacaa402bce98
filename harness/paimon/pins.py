"""Pins: a consumer without a reader, which keeps a table's snapshots from expiring.

Source: Paimon 1.3 docs, "Procedures" (reset_consumer) and "Consumer ID". Snapshots from the consumer's
next one on outlive num-retained.max; seen: expire_snapshots with retain_max 1 kept all of them.
"""

from __future__ import annotations

from typing import Protocol

from harness.errors import FlinkError, ReaderError, WaitTimeout
from harness.flink.gateway import StatementResult
from harness.model import Pin, TableContract


class Statements(Protocol):
    """What runs SQL in a session whose current catalog is the warehouse's: a GatewaySession."""

    def execute(self, statement: str) -> StatementResult: ...


class Consumers(Protocol):
    """What knows the consumers of a table: a NativeReader."""

    def consumers(self, contract: TableContract) -> dict[str, int]: ...


def pin(
    session: Statements, reader: Consumers, contract: TableContract, *, consumer: str, first_snapshot: int
) -> Pin:
    """Set the consumer and read back that it is in force, by a reader that did not set it.

    A failure is in the pin's `error`: without the pin, snapshots may expire.
    """
    error = ""
    try:
        session.execute(
            f"CALL sys.reset_consumer(`table` => '{contract.sink}', consumer_id => '{consumer}', "
            f"next_snapshot_id => CAST({first_snapshot} AS BIGINT))"
        )
        found = reader.consumers(contract).get(consumer)
        if found != first_snapshot:
            error = f"the consumer's next snapshot is {found or 'not there'}, set was {first_snapshot}"
    except (FlinkError, WaitTimeout, ReaderError) as failure:
        error = f"the consumer could not be set: {failure.what}"
    return Pin(table=contract.name, consumer=consumer, first_snapshot=first_snapshot, error=error)
