"""Asking pypaimon-rust: its exceptions become ours, and a storage that is too busy is asked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from harness.errors import WaitTimeout
from harness.paimon.failures import is_throttled, reader_error
from harness.waiting import wait_until

Answer = TypeVar("Answer")


def ask_patiently(ask: Callable[[], Answer], *, reader: str, patience_s: float) -> Answer:
    """What `ask` returns. Raises SinkFilesMissing or ReaderError.

    The engine itself gives up when storage says that it is too busy. It does so easily: `$snapshots`
    reads the files of all snapshots at once, and a MinIO with 1 GB takes some 300 requests at a time.
    """
    refusal = ""

    def attempt() -> tuple[Answer] | None:
        nonlocal refusal
        try:
            return (ask(),)
        except Exception as error:
            if not is_throttled(str(error)):
                raise reader_error(reader, str(error)) from error
            refusal = str(error)
            return None

    try:
        answer = wait_until(
            "object storage to be less busy", attempt, timeout_s=patience_s, every_s=0.5, seen=lambda: refusal
        )
    except WaitTimeout as error:
        raise reader_error(reader, error.what) from error
    return answer[0]
