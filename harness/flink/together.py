"""One action on several jobs at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from harness.ports import Job

Answer = TypeVar("Answer")


def of_each(jobs: Sequence[Job], action: Callable[[Job], Answer]) -> dict[str, Answer]:
    """Do something with every job at the same time; answers by the job's name.

    Raises what the action raised for the first job of those where it did, after all have ended.
    """
    with ThreadPoolExecutor(max_workers=max(1, len(jobs))) as pool:
        pending = {job.name: pool.submit(action, job) for job in jobs}
    return {name: answer.result() for name, answer in pending.items()}
