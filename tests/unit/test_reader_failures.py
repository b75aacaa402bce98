"""Why a reader could not read: the messages that the engines gave when it happened."""

from __future__ import annotations

import pytest

from harness.errors import ReaderError, SinkFilesMissing
from harness.paimon.failures import is_throttled, reader_error

GONE_FILES = [
    "org.apache.flink.runtime.JobException: Recovery is suppressed by NoRestartBackoffTimeStrategy\n"
    "java.io.FileNotFoundException: File 's3://warehouse/dwd.db/trial/dt=x/bucket-0/data-8e84c5fd-0.parquet' "
    "not found, Possible causes: 1.snapshot expires too fast, you can configure 'snapshot.time-retained'",
    "java.io.FileNotFoundException: File 's3://warehouse/dwd.db/trial/manifest/manifest-68e2-0' not found",
    "External error: Paimon hitting unexpected error IO operation failed on underlying storage: NotFound "
    '(permanent) at read => S3Error { code: "NoSuchKey", message: "The specified key does not exist.", '
    'resource: "/warehouse/dwd.db/trial/dt=x/bucket-0/data-8e84c5fd-0.parquet" }',
]
GONE_SNAPSHOTS = [
    "java.lang.IllegalArgumentException: The specified scan snapshotId 1 is out of available snapshotId "
    "range [3, 6].",
    "java.lang.IllegalArgumentException: There is currently no snapshot earlier than or equal to timestamp "
    "[1577836800000], the earliest snapshot's timestamp is [1796025742673]",
    "java.io.FileNotFoundException: No such file or directory: s3://warehouse/dwd.db/trial/snapshot/snapshot-5",
    "External error: Snapshot 1 does not exist.",
]
THROTTLED = (
    "IO operation failed on underlying storage: RateLimited (temporary) at read => S3Error { code: "
    '"TooManyRequests", resource: "/warehouse/dwd.db/dwd_order_detail/snapshot/snapshot-72" }'
)


@pytest.mark.parametrize("message", GONE_FILES)
def test_files_that_a_snapshot_needs_and_that_are_gone_are_named_so(message: str) -> None:
    assert isinstance(reader_error("r", message), SinkFilesMissing)


@pytest.mark.parametrize("message", GONE_SNAPSHOTS)
def test_a_snapshot_that_expired_is_not_a_missing_file(message: str) -> None:
    error = reader_error("r", message)

    assert type(error) is ReaderError
    assert "expired or was never there" in error.what


@pytest.mark.parametrize("message", [THROTTLED, "the SQL gateway does not answer"])
def test_any_other_failure_is_neither(message: str) -> None:
    error = reader_error("r", message)

    assert type(error) is ReaderError
    assert "r could not read the sink" in error.what


def test_a_busy_storage_is_asked_again_and_a_missing_file_is_not() -> None:
    assert is_throttled(THROTTLED)
    assert [False] * 3 == [is_throttled(message) for message in GONE_FILES]


def test_of_a_long_message_the_end_is_kept_where_the_cause_is() -> None:
    assert reader_error("r", "frame\n" * 500 + "the cause").what.endswith("the cause")
