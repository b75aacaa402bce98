"""Asking pypaimon-rust: again when storage is busy, never when it has answered."""

from __future__ import annotations

import pytest

from harness.errors import ReaderError, SinkFilesMissing
from harness.paimon.asking import ask_patiently

BUSY = 'RateLimited (temporary) at read => S3Error { code: "TooManyRequests" }'


class Storage:
    """Gives the answers that it was given, one by one; a text is raised."""

    def __init__(self, *answers: str | int) -> None:
        self.asked = 0
        self._answers = answers

    def __call__(self) -> int:
        answer = self._answers[min(self.asked, len(self._answers) - 1)]
        self.asked += 1
        if isinstance(answer, str):
            raise ValueError(answer)
        return answer


def ask(storage: Storage, patience_s: float = 5) -> int:
    return ask_patiently(storage, reader="r", patience_s=patience_s)


def test_a_busy_storage_is_asked_again() -> None:
    storage = Storage(BUSY, 7)

    assert 7 == ask(storage)
    assert 2 == storage.asked


def test_an_answer_of_nothing_is_an_answer() -> None:
    storage = Storage(0)

    assert 0 == ask(storage)
    assert 1 == storage.asked


def test_a_storage_that_stays_busy_is_an_error_that_says_so() -> None:
    with pytest.raises(ReaderError, match=r"less busy.*TooManyRequests") as caught:
        ask(Storage(BUSY), patience_s=0.1)

    assert type(caught.value) is ReaderError


def test_a_missing_file_is_not_asked_for_again() -> None:
    storage = Storage('NotFound (permanent) at read => S3Error { code: "NoSuchKey" }', 7)

    with pytest.raises(SinkFilesMissing):
        ask(storage)
    assert 1 == storage.asked
