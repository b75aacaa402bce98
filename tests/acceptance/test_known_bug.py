"""A loss that is really there in Flink CDC 3.5.0 is found.

FLINK-38531 (apache/flink-cdc PR 4165, fixed in 3.6), with GTIDs: a reader that is restored inside a row
event of the binlog takes the offsets of the event's other rows for the one that it was restored from. One
that began at the latest offset passes on only what comes after that, so it drops them. One that began with
`initial` compares with the end of its first load, and drops nothing: `./run soak 5 --scenario bulk-update`.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from findings import codes, findings, why

from harness import evidence
from harness.acceptance import Accepted
from harness.ledger import OPERATION_SCHEMA
from harness.model import Evidence, RunResult, Verdict
from harness.pytest_plugin import Accept

pytestmark = pytest.mark.docker

LONGEST_EVENT = 100
"""More updated orders than fit into a row event: of 104 bytes each, into the server's default of 8 KiB."""


def inside(result: RunResult) -> bool:
    """Whether the job was restored from a checkpoint inside the bulk update."""
    checks = [
        check for oracle in result.oracles for check in oracle.checks if oracle.oracle == "fault_effect"
    ]
    return [True] == [check.held for check in checks if "inside the bulk update" in check.name]


def stale(found: Evidence) -> list[int]:
    """The operations whose rows the sink should show at the last fence, and does not."""
    folder = Path(found.folder)
    (contract,) = found.tables
    last = max(found.fences, key=lambda fence: fence.mark.number)
    ledger = pq.read_table(folder / contract.ledger_file).slice(0, last.mark.operation)
    columns = [name for name in ledger.column_names if name not in OPERATION_SCHEMA.names]
    newest = {row[contract.source_key]: row for row in ledger.to_pylist()}
    rows = pq.read_table(folder / last.sink_rows).select(columns).cast(ledger.select(columns).schema)
    shown = {row[contract.source_key]: row for row in rows.to_pylist()}
    return sorted(
        row["operation"]
        for key, row in newest.items()
        if row["kind"] != "delete" and {name: row[name] for name in columns} != shown.get(key)
    )


def test_the_rest_of_a_row_event_is_lost_for_ever_and_the_run_is_invalid(accept: Accept) -> None:
    accepted: Accepted = accept("known-bulk-update-loss")
    result = accepted.result
    found = evidence.load(accepted.folder / "evidence")

    assert inside(result), why(result)
    assert Verdict.INVALID is result.verdict, why(result)
    assert "rows-differ" in codes(findings(result, "reconciliation")), why(result)
    assert Verdict.INVALID in {o.verdict for o in result.oracles if o.oracle == "snapshot_prefix"}, why(
        result
    )
    (bulk,) = found.bulks
    lost = stale(found)
    assert lost
    assert bulk.first_operation < lost[0] <= lost[-1] <= bulk.last_operation
    assert lost[-1] - lost[0] < LONGEST_EVENT
