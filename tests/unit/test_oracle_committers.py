"""The commit log's oracle on who committed, and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from commit_defects import ORDERS, all_changed, changed, logged, with_compaction
from judging import codes, finding

from harness.model import Evidence, SnapshotRecord, Verdict
from harness.oracles.committers import BATCH_IDENTIFIER

TABLES = pytest.mark.parametrize("table", ["orders", "behavior-log"])


@pytest.fixture
def clean(evidence: Evidence) -> Evidence:
    return with_compaction(evidence)


@TABLES
@pytest.mark.parametrize("kind", ["OVERWRITE", "ANALYZE", ""])
def test_a_commit_of_a_kind_that_no_job_makes_is_invalid(clean: Evidence, table: str, kind: str) -> None:
    result = logged(changed(clean, 6, table, kind=kind, commit_user="somebody"))

    assert Verdict.INVALID == result.verdict
    assert {"foreign-commit"} == codes(result)
    assert "commit user somebody" in finding(result, "foreign-commit").examples[0]


def test_a_batch_commit_is_invalid(clean: Evidence) -> None:
    result = logged(changed(clean, 4, ORDERS, commit_user="somebody", commit_identifier=BATCH_IDENTIFIER))

    assert Verdict.INVALID == result.verdict
    assert {"foreign-commit"} == codes(result)


def test_more_writers_than_lives_are_invalid(clean: Evidence) -> None:
    result = logged(all_changed(clean, ORDERS, lambda r: {"commit_user": f"user-{(r.snapshot_id - 1) // 2}"}))

    assert Verdict.INVALID == result.verdict
    assert {"unknown-writer"} == codes(result)
    assert (
        "user-0: snapshots 1 to 2",
        "user-1: snapshots 3 to 4",
        "user-2: snapshots 5 to 6",
    ) == finding(result, "unknown-writer").examples


def second_writer(record: SnapshotRecord) -> dict[str, Any]:
    return {"commit_user": "second"} if record.snapshot_id > 3 else {}


def test_a_restored_job_with_another_commit_user_is_unknown(clean: Evidence) -> None:
    result = logged(all_changed(clean, ORDERS, second_writer))

    assert Verdict.UNKNOWN == result.verdict
    assert {"commit-user-changed"} == codes(result)


def test_a_job_that_started_from_nothing_twice_may_have_two_commit_users(clean: Evidence) -> None:
    anew = replace(clean, jobs=tuple(replace(job, restored_from="") for job in clean.jobs))

    assert Verdict.VALID == logged(all_changed(anew, ORDERS, second_writer)).verdict


def test_identifiers_begin_again_with_a_job_that_started_from_nothing(clean: Evidence) -> None:
    anew = replace(clean, jobs=tuple(replace(job, restored_from="") for job in clean.jobs))
    later = {4: 1, 5: 1, 6: 2}

    result = logged(
        all_changed(
            anew,
            ORDERS,
            lambda r: second_writer(r) | {"commit_identifier": later.get(r.snapshot_id, r.commit_identifier)},
        )
    )

    assert Verdict.VALID == result.verdict


def test_two_writers_at_once_are_invalid_although_there_were_two_starts(clean: Evidence) -> None:
    anew = replace(clean, jobs=tuple(replace(job, restored_from="") for job in clean.jobs))

    result = logged(changed(anew, 3, ORDERS, commit_user="second"))

    assert Verdict.INVALID == result.verdict
    assert {"writers-interleaved"} == codes(result)


def test_a_table_whose_job_is_not_known_is_unknown(clean: Evidence) -> None:
    result = logged(replace(clean, jobs=tuple(job for job in clean.jobs if job.name != ORDERS)))

    assert Verdict.UNKNOWN == result.verdict
    assert {"no-job"} == codes(result)


def test_a_checkpoint_committed_after_a_later_one_is_invalid(clean: Evidence) -> None:
    result = logged(changed(clean, 3, ORDERS, commit_identifier=1_001 - 1))

    assert Verdict.INVALID == result.verdict
    assert {"identifier-fell"} == codes(result)


@pytest.mark.parametrize(("number", "identifier"), [(4, 1_003), (2, 1_001)])
def test_a_checkpoint_committed_twice_is_invalid(clean: Evidence, number: int, identifier: int) -> None:
    result = logged(changed(clean, number, ORDERS, commit_identifier=identifier))

    assert Verdict.INVALID == result.verdict
    assert {"committed-twice"} == codes(result)
    assert 2 == len(finding(result, "committed-twice").examples)
