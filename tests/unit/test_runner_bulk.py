"""The runner where the source is not read as usual: a bulk update that is struck, and the latest offset."""

from __future__ import annotations

from pathlib import Path

import pytest
from executions import Execution, findings, verdict_of
from factories import START_MS
from fake_workload import BULK_END
from fakes import AFTER_ANY_FAULT_MS

from harness import oracles
from harness.errors import FaultError
from harness.model import BulkUpdate, Restore, Verdict


def struck_in_a_bulk_update(
    folder: Path, *, checkpoint: int, read_to_its_end: bool = False, restored_at_ms: int = AFTER_ANY_FAULT_MS
) -> Execution:
    """A fault during a bulk update; the job is restored from a checkpoint. 1003 is one half through it."""
    execution = Execution(folder, ask=tuple(oracles.ORACLES))
    execution.during = "bulk-update"
    execution.pipeline.hidden = set() if read_to_its_end else {-BULK_END}
    for job in execution.pipeline.fake_jobs:
        job.restore = Restore(checkpoint_id=checkpoint, at_ms=restored_at_ms, is_savepoint=False, path="")
    return execution


def test_a_fault_during_a_bulk_update_strikes_once_a_part_of_it_is_in_the_sink_and_the_source_goes_on_then(
    tmp_path: Path,
) -> None:
    execution = struck_in_a_bulk_update(tmp_path, checkpoint=1003)
    outcome = execution.execute()

    made = execution.calls.made
    at = made.index("bulk_update")
    shown = ["shows orders", "shows orders"]
    assert ["bulk_update", "shows orders", "inject", *shown, "resume", "prove", "heal"] == made[at : at + 8]
    assert {"VALID"} == {result.verdict.value for result in outcome.oracles}
    (bulk,) = outcome.evidence.bulks
    expected = BulkUpdate(
        table="orders",
        fault=1,
        first_operation=19,
        last_operation=30,
        committed_at_ms=bulk.committed_at_ms,
        restored_checkpoint=1003,
    )
    assert expected == bulk
    (proof,) = outcome.evidence.faults
    assert "orders: the bulk update was under way" == proof.checks[0].name
    assert 3 == len(execution.events("bulk update"))


@pytest.mark.parametrize(
    ("checkpoint", "where"), [(1002, "before it"), (1004, "after it"), (7, "no snapshot")]
)
def test_a_job_restored_from_a_checkpoint_outside_the_bulk_update_proves_nothing(
    tmp_path: Path, checkpoint: int, where: str
) -> None:
    outcome = struck_in_a_bulk_update(tmp_path, checkpoint=checkpoint).execute()

    assert Verdict.UNKNOWN is verdict_of(outcome)
    assert where in findings(outcome, "fault_effect")["bulk-update-missed"].actual


def test_a_restore_before_the_fault_is_none_of_the_faults(tmp_path: Path) -> None:
    outcome = struck_in_a_bulk_update(tmp_path, checkpoint=1003, restored_at_ms=START_MS).execute()

    assert Verdict.UNKNOWN is verdict_of(outcome)
    assert "no restore was seen" == findings(outcome, "fault_effect")["bulk-update-missed"].actual


def test_a_bulk_update_that_had_been_read_to_its_end_when_the_fault_struck_proves_nothing(
    tmp_path: Path,
) -> None:
    outcome = struck_in_a_bulk_update(tmp_path, checkpoint=1003, read_to_its_end=True).execute()

    assert Verdict.UNKNOWN is verdict_of(outcome)
    assert "all of it" in findings(outcome, "fault_effect")["fault-did-not-bite"].actual


def test_a_fault_that_cannot_be_injected_leaves_its_bulk_update_in_the_evidence(tmp_path: Path) -> None:
    execution = Execution(tmp_path, inject=FaultError("no TaskManager is idle"))
    execution.during = "bulk-update"
    outcome = execution.execute()

    assert [0] == [bulk.restored_checkpoint for bulk in outcome.evidence.bulks]
    assert "bulk-update-missed" in findings(outcome, "fault_effect")


def test_with_the_latest_offset_the_first_rows_come_once_a_probe_has_arrived(tmp_path: Path) -> None:
    execution = Execution(tmp_path, ask=tuple(oracles.ORACLES), faults_wanted=0)
    execution.startup = "latest-offset"
    outcome = execution.execute()

    shown = ["shows orders", "shows behavior-log"]
    assert ["prepare", "submit", "probe", *shown, "fill", "start", "fence"] == execution.calls.made[2:10]
    assert Verdict.VALID is verdict_of(outcome)
