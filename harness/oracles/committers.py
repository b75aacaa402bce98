"""Who committed to a table, and in which order: a part of the oracle commit_log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise

from harness.model import JobHistory, SnapshotRecord, Verdict
from harness.oracles.comparison import MAX_EXAMPLES
from harness.oracles.rules import Rules

APPEND, COMPACT = "APPEND", "COMPACT"
BATCH_IDENTIFIER = 2**63 - 1
"""The commit identifier of every batch commit. Source: Paimon 1.3, BatchWriteBuilder.COMMIT_IDENTIFIER."""


def judge_committers(rules: Rules, lives: Sequence[JobHistory], records: Sequence[SnapshotRecord]) -> None:
    """`lives` are those of the table's job, `records` its snapshots in their order."""
    foreign = [
        record
        for record in records
        if record.kind not in (APPEND, COMPACT) or record.commit_identifier == BATCH_IDENTIFIER
    ]
    kinds = Counter(record.kind for record in records)
    rules.require_none(
        "commits of a streaming job only",
        [_commit(record) for record in foreign],
        "foreign-commit",
        "a commit is of a kind that no streaming job makes, so somebody else changed the table",
        held=", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "no snapshots",
        todo="look for who ran INSERT, DELETE, TRUNCATE or ANALYZE on the sink",
    )
    own = [record for record in records if record not in foreign]
    _judge_users(rules, lives, own)
    _judge_order(rules, own)


def _judge_order(rules: Rules, own: Sequence[SnapshotRecord]) -> None:
    by_user: dict[str, list[SnapshotRecord]] = {}
    for record in own:
        by_user.setdefault(record.commit_user, []).append(record)
    rules.require_none(
        "checkpoints are committed in order",
        [
            f"{_commit(later)} after {_commit(earlier)}"
            for commits in by_user.values()
            for earlier, later in pairwise(commits)
            if later.commit_identifier < earlier.commit_identifier
        ],
        "identifier-fell",
        "a checkpoint was committed after a later one",
    )
    times = Counter((record.commit_user, record.commit_identifier, record.kind) for record in own)
    rules.require_none(
        "each checkpoint is committed once",
        [
            _commit(record)
            for record in own
            if times[record.commit_user, record.commit_identifier, record.kind] > 1
        ],
        "committed-twice",
        "a checkpoint has more than one commit of a kind",
    )


def _judge_users(rules: Rules, lives: Sequence[JobHistory], own: Sequence[SnapshotRecord]) -> None:
    """A commit user is drawn when a job starts from nothing, and comes back with its state (seen, 1.3.1)."""
    turns = [
        (user, [record.snapshot_id for record in commits])
        for user, commits in groupby(own, key=lambda record: record.commit_user)
    ]
    users = {user for user, _ in turns}
    starts = sum(not job.restored_from for job in lives)
    seen = [f"{user or 'nobody'}: snapshots {ids[0]} to {ids[-1]}" for user, ids in turns]
    rules.check(
        "a commit user for each start from nothing, one after the other",
        expected=f"at most {starts}; the job had {len(lives)} lives",
        actual=f"{len(users)}: {'; '.join(seen[:MAX_EXAMPLES]) or 'none'}",
        held=0 < len(users) <= starts and len(turns) == len(users),
    )
    if not lives:
        rules.find(Verdict.UNKNOWN, "no-job", "nothing is known of the job, so neither of who may commit")
    elif len(users) > len(lives):
        rules.find(
            Verdict.INVALID,
            "unknown-writer",
            "more writers committed than the job had lives: somebody else wrote into the table",
            expected=f"at most {starts} commit users",
            actual=f"{len(users)}",
            examples=seen,
        )
    elif len(users) > starts:
        rules.find(
            Verdict.UNKNOWN,
            "commit-user-changed",
            "there are more commit users than starts from nothing: a foreign writer, or a job that lost its "
            "commit user with its state, so that it can't tell what it has committed before",
            expected=f"at most {starts} commit users",
            actual=f"{len(users)}",
            examples=seen,
        )
    if len(turns) > len(users):
        rules.find(
            Verdict.INVALID,
            "writers-interleaved",
            "a writer committed again after another one had begun: there were two at once",
            examples=seen,
        )


def _commit(record: SnapshotRecord) -> str:
    return (
        f"snapshot {record.snapshot_id} ({record.kind}, checkpoint {record.commit_identifier}, "
        f"commit user {record.commit_user or 'nobody'})"
    )
