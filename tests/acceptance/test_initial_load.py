"""A fault in the initial load: 200,000 rows of each table are on their way, under writes."""

from __future__ import annotations

import pytest

from harness.acceptance import Accepted

pytestmark = pytest.mark.docker


@pytest.mark.exactly_once(scenario="initial-load")
def test_a_taskmanager_killed_in_the_initial_load_of_both_tables_costs_no_row(accepted: Accepted) -> None:
    (proof,) = accepted.result.faults

    under_way = [check for check in proof.checks if "first load was under way" in check.name]
    assert 2 == len(under_way)
    assert all(check.held for check in proof.checks)
