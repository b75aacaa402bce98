"""Where faults landed: a phase is claimed only where the times of a run show it."""

from __future__ import annotations

from dataclasses import replace

import factories
import pytest
import report_sample

from harness.model import (
    CheckpointRecord,
    FaultProof,
    JobHistory,
    Restore,
    RunResult,
    SnapshotRecord,
    Verdict,
)
from harness.report import html, markdown
from harness.report.coverage import (
    CyclePhase,
    bound_sentence,
    bounds,
    coverage,
    phases_at,
)

START_MS = factories.START_MS
BETWEEN, FLOWING, COMPLETE = CyclePhase.BETWEEN, CyclePhase.FLOWING, CyclePhase.COMPLETE


def page_of(run: RunResult) -> str:
    """The page of a run, its plots left out: they take long."""
    return html.render(run, draw=lambda spec, *, title, description, css_class: "<svg></svg>")


def checkpoint(number: int, at_ms: int, duration_ms: int = 100, **changes: object) -> CheckpointRecord:
    found = CheckpointRecord(
        checkpoint_id=number,
        status="COMPLETED",
        triggered_at_ms=at_ms,
        duration_ms=duration_ms,
        state_size_bytes=1,
        is_savepoint=False,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def snapshot(number: int, identifier: int, at_ms: int, kind: str = "APPEND") -> SnapshotRecord:
    return replace(
        factories.snapshot(),
        snapshot_id=number,
        commit_identifier=identifier,
        committed_at_ms=at_ms,
        kind=kind,
    )


def life(*checkpoints: CheckpointRecord, restored_at_ms: int = 0) -> JobHistory:
    restore = Restore(checkpoint_id=1, at_ms=restored_at_ms, is_savepoint=False, path="s3://x")
    return replace(
        factories.job(), checkpoints=checkpoints, last_restore=restore if restored_at_ms > 0 else None
    )


CYCLES = life(checkpoint(1, 1_000), checkpoint(2, 2_000), checkpoint(3, 3_000, 500))
COMMITS = (
    snapshot(1, 1, 1_150),
    snapshot(2, 2, 2_400),
    snapshot(3, 2, 9_000, "COMPACT"),
    snapshot(4, 3, 3_900),
)


@pytest.mark.parametrize(
    ("at_ms", "expected"),
    [
        (500, {BETWEEN}),
        (1_000, {FLOWING}),
        (1_099, {FLOWING}),
        (1_100, {COMPLETE}),
        (1_149, {COMPLETE}),
        (1_150, {BETWEEN}),
        (2_200, {COMPLETE}),
        (2_400, {BETWEEN}),
        (3_499, {FLOWING}),
        (3_700, {COMPLETE}),
        (9_999, {BETWEEN}),
    ],
)
def test_a_moment_is_placed_by_the_times_of_checkpoint_and_commit(
    at_ms: int, expected: set[CyclePhase]
) -> None:
    assert expected == phases_at(at_ms, [CYCLES], COMMITS)


def test_a_moment_may_be_in_two_phases_when_a_commit_is_slow() -> None:
    cycles = life(checkpoint(1, 1_000), checkpoint(2, 2_000))

    assert {FLOWING, COMPLETE} == phases_at(2_050, [cycles], [snapshot(1, 1, 2_500)])


def test_a_checkpoint_that_failed_ends_after_its_duration_and_leads_to_no_commit() -> None:
    cycles = life(checkpoint(1, 1_000), checkpoint(2, 2_000, 15_000, status="FAILED"))
    commits = [snapshot(1, 1, 1_200), snapshot(2, 2, 60_000)]

    assert {FLOWING} == phases_at(16_999, [cycles], commits)
    assert {BETWEEN} == phases_at(17_000, [cycles], commits)


@pytest.mark.parametrize(
    "unfinished",
    [
        {"status": "FAILED", "duration_ms": 0},
        {"status": "FAILED", "duration_ms": -1},
        {"status": "IN_PROGRESS", "duration_ms": 20},
    ],
)
def test_a_checkpoint_whose_end_is_not_told_was_under_way_until_the_restore(
    unfinished: dict[str, object],
) -> None:
    cycles = life(
        checkpoint(1, 1_000),
        checkpoint(2, 2_000, **unfinished),  # type: ignore[arg-type]
        checkpoint(3, 9_000),
        restored_at_ms=7_000,
    )
    commits = [snapshot(1, 1, 1_200)]

    assert {FLOWING} == phases_at(6_999, [cycles], commits)
    assert {BETWEEN} == phases_at(7_000, [cycles], commits)


def test_a_savepoint_sends_barriers_too() -> None:
    assert {FLOWING} == phases_at(1_050, [life(checkpoint(1, 1_000, is_savepoint=True))], COMMITS)


def test_a_checkpoint_with_nothing_to_commit_is_not_waited_for() -> None:
    assert {BETWEEN} == phases_at(2_500, [CYCLES], [snapshot(1, 1, 1_150), snapshot(2, 3, 3_900)])


def test_checkpoints_of_all_lives_of_a_job_count() -> None:
    lives = [life(checkpoint(1, 1_000)), life(checkpoint(2, 5_000))]

    assert {FLOWING} == phases_at(5_050, lives, COMMITS)


@pytest.mark.parametrize(
    ("at_ms", "cycles", "commits"),
    [
        (2_500, life(), COMMITS),
        (2_500, CYCLES, ()),
        (0, CYCLES, COMMITS),
        (2_500, life(checkpoint(2, 2_000), checkpoint(4, 4_000)), COMMITS),
        (500, life(checkpoint(2, 2_000)), COMMITS),
        (2_500, CYCLES, (snapshot(7, 3, 3_900),)),
    ],
    ids=[
        "no checkpoints",
        "no snapshots",
        "never injected",
        "a checkpoint between is not known",
        "the first checkpoint is not known",
        "the snapshot has expired",
    ],
)
def test_a_moment_is_not_called_calm_where_something_is_not_known(
    at_ms: int, cycles: JobHistory, commits: tuple[SnapshotRecord, ...]
) -> None:
    assert frozenset() == phases_at(at_ms, [cycles], commits)


def fault(at_ms: int, kind: str = "kill-taskmanager", *, bit: bool = True) -> FaultProof:
    return replace(factories.proof(bit=bit), fault=kind, injected_at_ms=at_ms)


def result(*faults: FaultProof, **changes: object) -> RunResult:
    run = factories.result(faults=faults, jobs=(CYCLES,), snapshots=COMMITS)
    return replace(run, **changes)  # type: ignore[arg-type]


def test_faults_are_counted_by_kind_job_and_phase() -> None:
    rows = coverage(result(fault(1_050), fault(1_060), fault(2_200), fault(2_500, "cut-storage")))

    assert [("kill-taskmanager", "orders"), ("cut-storage", "orders")] == [
        (row.fault, row.job) for row in rows
    ]
    assert ("not tested", "2", "1", "not tested") == rows[0].cells
    assert ("1", "not tested", "not tested", "not tested") == rows[1].cells


def test_a_fault_that_did_not_bite_tests_nothing() -> None:
    (row,) = coverage(result(fault(1_050, bit=False)))

    assert ("not tested",) * 4 == row.cells
    assert 0 == row.unplaced


def test_a_fault_at_an_unknown_moment_is_counted_apart() -> None:
    (row,) = coverage(result(fault(1_050), snapshots=(), jobs=(life(),)))

    assert ("not tested",) * 4 == row.cells
    assert 1 == row.unplaced


def test_the_commit_itself_is_never_claimed() -> None:
    rows = coverage(report_sample.run())

    assert {"not tested"} == {row.cells[-1] for row in rows}
    assert "these times can't tell it apart" in page_of(report_sample.run())


@pytest.mark.parametrize(("landed", "expected"), [(1, 0.95), (2, 0.7764), (3, 0.6316), (300, 0.00994)])
def test_the_bound_is_exact(landed: int, expected: float) -> None:
    (bound,) = bounds(result(*[fault(1_050)] * landed))

    assert (landed, "kill-taskmanager") == (bound.landed, bound.fault)
    assert bound.probability == pytest.approx(expected, abs=0.0001)
    assert f"{expected:.1%}." in bound_sentence(bound)


def test_many_faults_come_near_the_rule_of_three() -> None:
    (bound,) = bounds(result(*[fault(1_050)] * 1000))

    assert bound.probability == pytest.approx(3 / 1000, rel=0.01)


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": Verdict.INVALID},
        {"verdict": Verdict.UNKNOWN},
        {"oracles": ()},
        {"failure": "no engine"},
        {"faults": (fault(1_050), fault(1_060, bit=False))},
        {"faults": ()},
    ],
)
def test_a_run_that_is_not_valid_or_had_no_fault_bounds_nothing(changes: dict[str, object]) -> None:
    run = result(fault(1_050), **changes)

    assert () == bounds(run)
    assert "confidence" not in page_of(run)
    assert "confidence" not in markdown.render(run)


def test_only_faults_that_landed_are_in_a_bound() -> None:
    kinds = [bound.fault for bound in bounds(report_sample.run())]

    assert ["kill-taskmanager", "stop-with-savepoint", "cut-storage"] == kinds


def test_page_and_summary_show_where_faults_landed_and_what_that_is_worth() -> None:
    page, summary = page_of(report_sample.run()), markdown.render(report_sample.run())

    assert "share one machine" in page
    assert "| cut-storage | orders | not tested | 1 | not tested | not tested | - |" in summary
    assert "| kill-taskmanager | orders | not tested | not tested | 1 | not tested | - |" in summary
    for text in (page, summary):
        assert "at most 95.0%" in text
        assert "not tested" in text


def test_a_run_without_a_job_says_so() -> None:
    assert "No fault was injected while a job ran." in page_of(factories.result(faults=(), jobs=()))
