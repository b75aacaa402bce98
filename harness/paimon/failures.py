"""Why a reader could not read: from the engine's message to the error that says what it means."""

from __future__ import annotations

import re
import time

from harness.errors import ReaderError, SinkFilesMissing
from harness.model import Reading

_SNAPSHOT_GONE = re.compile(
    r"out of available snapshotId range"  # Flink, by id
    r"|no snapshot earlier than or equal to"  # Flink, by time
    r"|Snapshot \d+ does not exist"  # pypaimon-rust
)
_SNAPSHOT_FILE = re.compile(r"/snapshot/snapshot-\d+")
_FILE_GONE = re.compile(r"FileNotFoundException|NoSuchKey|NotFound \(permanent\)")


def reader_error(reader: str, message: str) -> ReaderError:
    """A snapshot that is not there any more is told from one whose files are gone.

    The first is expired or was never there: nothing is known of its rows. The second is a snapshot that
    the table still offers and that cannot be read: SinkFilesMissing. All messages were seen on Paimon
    1.3.1 and pypaimon-rust 0.4 (2026-11-30).
    """
    first = message.split("Backtrace:")[0].split("Context:")[0].strip()  # of pypaimon-rust, the request
    file_gone = _FILE_GONE.search(message)
    if _SNAPSHOT_GONE.search(message) or (file_gone and _SNAPSHOT_FILE.search(message)):
        return ReaderError(f"{reader}: the snapshot is expired or was never there: {_end(first)}")
    if file_gone:
        return SinkFilesMissing(f"{reader}: a file of the sink is gone: {_end(first)}")
    return ReaderError(f"{reader} could not read the sink: {_end(first)}")


def failed_reading(reader: str, error: ReaderError, *, begun: float) -> Reading:
    """The answer of a reader that could not read; `begun` is when it began, on the monotonic clock."""
    return Reading(
        reader=reader,
        error=error.what,
        files_missing=isinstance(error, SinkFilesMissing),
        seconds=time.monotonic() - begun,
    )


def is_throttled(message: str) -> bool:
    """Whether object storage was too busy to answer: to be asked again, since it says nothing of the sink."""
    return "RateLimited (temporary)" in message


def _end(message: str) -> str:
    """Flink's causes come innermost last; the others' messages are short."""
    return message if len(message) <= 800 else f"… {message[-800:]}"
