"""A fault in the initial load: 200,000 rows of each table are on their way, under writes.

Flink CDC 3.5.0 may hang in it: after a restore a reader reads two chunks one after the other with one
binlog client, and can miss the end of the second one's backfill (FLINK-39315, open). Then the job runs on,
its checkpoints complete, and the load never ends. The harness must say INVALID then; what it must
never see is a row twice or another row.
"""

from __future__ import annotations

import pytest
from findings import codes, findings, why

from harness.model import Verdict
from harness.pytest_plugin import Accept

pytestmark = pytest.mark.docker


def test_a_kill_in_the_initial_load_costs_no_row_or_is_found_to_have_hung_the_load(accept: Accept) -> None:
    result = accept("initial-load").result

    (proof,) = result.faults
    under_way = [check for check in proof.checks if "first load was under way" in check.name]
    assert [True, True] == [check.held for check in under_way], why(result)
    assert proof.bit, why(result)
    if result.verdict is Verdict.VALID:
        return
    assert Verdict.INVALID is result.verdict, why(result)
    found = [finding for oracle in result.oracles for finding in oracle.findings]
    assert "marker-lost" in codes(findings(result, "reconciliation")), why(result)
    assert not codes(found) & {"duplicates", "added-twice", "ledger-is-not-source"}, why(result)
    assert [] == [example for finding in found for example in finding.examples if "repeated" in example]
