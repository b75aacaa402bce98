"""Pins: the consumer is set at the snapshot asked for, and only what is read back counts."""

from __future__ import annotations

from harness.errors import ReaderError, SqlError
from harness.flink.gateway import StatementResult
from harness.model import Pin, TableContract
from harness.paimon.pins import pin
from tests.unit.sink_warehouse import LOG


class FakeSession:
    """Remembers its statements; refuses them if told so."""

    def __init__(self, refusal: str = "") -> None:
        self.statements: list[str] = []
        self._refusal = refusal

    def execute(self, statement: str) -> StatementResult:
        self.statements.append(statement)
        if self._refusal:
            raise SqlError(self._refusal)
        return StatementResult(rows=(("Success",),), job_id="")


class FakeReader:
    """Knows the consumers that it is given, or fails."""

    def __init__(self, consumers: dict[str, int] | None) -> None:
        self._consumers = consumers

    def consumers(self, contract: TableContract) -> dict[str, int]:
        if self._consumers is None:
            raise ReaderError("no storage")
        return self._consumers


def set_on(session: FakeSession, reader: FakeReader) -> Pin:
    return pin(session, reader, LOG, consumer="harness-run", first_snapshot=12)


def test_the_consumer_is_set_at_the_first_snapshot_to_keep() -> None:
    session = FakeSession()
    found = set_on(session, FakeReader({"harness-run": 12, "other": 3}))

    assert [
        "CALL sys.reset_consumer(`table` => 'dwd.dwd_behavior_log', consumer_id => 'harness-run', "
        "next_snapshot_id => CAST(12 AS BIGINT))"
    ] == session.statements
    assert Pin(table="behavior-log", consumer="harness-run", first_snapshot=12) == found


def test_a_consumer_that_is_not_read_back_is_not_in_force() -> None:
    assert "next snapshot is not there, set was 12" in set_on(FakeSession(), FakeReader({})).error


def test_a_consumer_at_another_snapshot_is_not_in_force() -> None:
    assert "is 13, set was 12" in set_on(FakeSession(), FakeReader({"harness-run": 13})).error


def test_what_the_engine_refuses_is_the_error_of_the_pin() -> None:
    assert "no such table" in set_on(FakeSession("no such table"), FakeReader({"harness-run": 12})).error


def test_a_pin_that_can_not_be_read_back_is_an_error() -> None:
    assert "no storage" in set_on(FakeSession(), FakeReader(None)).error
