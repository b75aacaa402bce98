"""A soak: it goes on whatever a chapter ends with, tells each in its table, and its code is the worst."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import factories
import pytest

from harness import soak as soaking
from harness.acceptance import Accepted
from harness.errors import UsageError
from harness.model import Component, Event, RunResult, Verdict
from harness.soak import Head, Soak, head_of, page, soak

VALID = factories.result()
INVALID = factories.result(verdict=Verdict.INVALID, exit_code=1, oracles=(factories.oracle(Verdict.INVALID),))
UNKNOWN = factories.result(verdict=Verdict.UNKNOWN, exit_code=2, faults=(factories.proof(bit=False),))
FAILED = factories.result(
    verdict=Verdict.UNKNOWN, exit_code=3, failure="no room\nleft", oracles=(), faults=()
)
STOPPED = factories.result(
    verdict=Verdict.UNKNOWN, exit_code=2, events=(Event(at_ms=1, kind="interrupted", text="stopped"),)
)
Ending = RunResult | BaseException


class Chapters:
    """Ends each chapter as planned, and notes its seed; a chapter takes `minutes` on the clock."""

    def __init__(self, *endings: Ending, minutes: float = 4, seen: Callable[[], None] = lambda: None) -> None:
        self._endings = list(endings)
        self._minutes = minutes
        self._seen = seen
        self.seeds: list[int] = []
        self.clock_s = 0.0

    def __call__(self, seed: int) -> Accepted:
        self._seen()
        self.seeds.append(seed)
        self.clock_s += self._minutes * 60
        ending = self._endings[len(self.seeds) - 1]
        if isinstance(ending, BaseException):
            raise ending
        return Accepted(result=ending, folder=Path(f"reports/run-{seed}"), kept="")


def head() -> Head:
    return head_of(
        scenario="acceptance",
        profile="fast",
        seed=100,
        reproduce="./run harness soak 3 --seed 100",
        now=datetime(2026, 7, 6, 10, 15, tzinfo=UTC),
    )


def soaked(chapters: Chapters, folder: Path, *, wanted: int, minutes: float | None = None) -> Soak:
    return soak(
        chapters, head=head(), wanted=wanted, folder=folder, minutes=minutes, clock_s=lambda: chapters.clock_s
    )


def rows(text: str) -> list[list[str]]:
    """The cells of the chapters in a page's table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_chapter_has_a_seed_of_its_own_and_a_row(tmp_path: Path) -> None:
    chapters = Chapters(VALID, VALID, VALID)
    done = soaked(chapters, tmp_path, wanted=3)

    table = rows((tmp_path / "soak.md").read_text())
    assert [100, 101, 102] == chapters.seeds
    assert [["1", "100"], ["2", "101"], ["3", "102"]] == [row[:2] for row in table]
    assert ["VALID", "74 s", "12 s"] == table[0][2:5]
    assert "run-102" == table[2][-1]
    assert 0 == done.exit_code


def test_it_goes_on_after_a_chapter_that_is_not_valid_and_after_a_crash(tmp_path: Path) -> None:
    done = soaked(
        Chapters(INVALID, UNKNOWN, FAILED, UsageError("bad"), ZeroDivisionError("a bug"), VALID),
        tmp_path,
        wanted=6,
    )

    expected = ["INVALID", "UNKNOWN", "HARNESS FAILED", "HARNESS FAILED", "HARNESS FAILED", "VALID"]
    assert expected == [chapter.outcome for chapter in done.chapters]
    text = (tmp_path / "soak.md").read_text()
    assert "- chapter 3: no room left" in text
    assert "- chapter 4: bad" in text
    assert "- chapter 5: ZeroDivisionError: a bug" in text
    assert "Traceback" in done.chapters[4].trace


@pytest.mark.parametrize(
    ("endings", "code"),
    [
        ([VALID, VALID], 0),
        ([VALID, UNKNOWN], 2),
        ([VALID, FAILED, UNKNOWN], 3),
        ([INVALID, FAILED, VALID], 1),
        ([VALID, RuntimeError()], 3),
        ([replace(VALID, oracles=())], 2),
    ],
)
def test_the_exit_code_is_the_worst_chapters(tmp_path: Path, endings: list[Ending], code: int) -> None:
    assert code == soaked(Chapters(*endings), tmp_path, wanted=len(endings)).exit_code


def test_after_each_chapter_table_and_json_are_there_for_all_so_far(tmp_path: Path) -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(len(soaking.load(tmp_path).chapters) if (tmp_path / "soak.json").is_file() else 0)

    done = soaked(Chapters(VALID, INVALID, VALID, seen=look), tmp_path, wanted=3)

    assert [0, 1, 2] == seen
    assert done == soaking.load(tmp_path)
    assert page(done) == (tmp_path / "soak.md").read_text()
    assert {"soak.md", "soak.json"} == {path.name for path in tmp_path.iterdir()}


def test_a_chapter_that_was_stopped_is_the_last_one_and_the_soak_is_not_valid(tmp_path: Path) -> None:
    chapters = Chapters(VALID, STOPPED, VALID)
    done = soaked(chapters, tmp_path, wanted=3)

    assert [100, 101] == chapters.seeds
    assert (2, 2) == (len(done.chapters), done.exit_code)
    assert "stopped by the user" in (tmp_path / "soak.md").read_text()


def test_a_stop_between_chapters_ends_the_soak_and_is_not_valid(tmp_path: Path) -> None:
    done = soaked(Chapters(VALID, KeyboardInterrupt()), tmp_path, wanted=3)

    assert (1, 2) == (len(done.chapters), done.exit_code)
    assert done == soaking.load(tmp_path)


def test_no_chapter_begins_after_the_minutes_are_over(tmp_path: Path) -> None:
    chapters = Chapters(VALID, VALID, VALID, VALID, minutes=4)
    done = soaked(chapters, tmp_path, wanted=4, minutes=7)

    assert [100, 101] == chapters.seeds
    assert 0 == done.exit_code
    assert "2 of 4 chapters in 8 min 00 s" in done.counts
    assert "the 7 minutes were over" in done.counts


def test_each_chapter_is_told_once_it_is_in_the_table(tmp_path: Path) -> None:
    told: list[tuple[int, str, int]] = []
    soak(
        Chapters(VALID, RuntimeError("lost"), INVALID),
        head=head(),
        wanted=3,
        folder=tmp_path,
        tell=lambda done: told.append((done.number, done.outcome, len(soaking.load(tmp_path).chapters))),
    )

    assert [(1, "VALID", 1), (2, "HARNESS FAILED", 2), (3, "INVALID", 3)] == told


def test_a_soak_without_a_chapter_is_unknown(tmp_path: Path) -> None:
    done = soaked(Chapters(), tmp_path, wanted=3, minutes=0)

    assert (0, 2) == (len(done.chapters), done.exit_code)


def test_the_last_line_counts_the_chapters_by_how_they_ended(tmp_path: Path) -> None:
    soaked(Chapters(VALID, INVALID, VALID, FAILED), tmp_path, wanted=4)

    last = (tmp_path / "soak.md").read_text().splitlines()[-1]
    assert "4 of 4 chapters in 16 min 00 s: 2 VALID, 0 UNKNOWN, 1 INVALID, 1 HARNESS FAILED" == last


def test_a_fault_that_did_not_bite_or_was_not_recovered_from_is_no_number(tmp_path: Path) -> None:
    missed = factories.proof(bit=False)
    lost = replace(factories.proof(), recovered_at_ms=0)
    never = replace(factories.proof(), injected_at_ms=0, recovered_at_ms=0, checks=())
    soaked(Chapters(factories.result(faults=(missed, lost, never)), VALID, FAILED), tmp_path, wanted=3)

    table = rows((tmp_path / "soak.md").read_text())
    assert ["12 s, no bite", "not recovered", "not recovered, no bite"] == table[0][4:7]
    assert ["-"] == table[1][6:7]
    assert ["-", "-", "-"] == table[2][4:7]


def test_rows_and_checkpoints_of_a_chapter_are_those_of_its_oracles_and_jobs(tmp_path: Path) -> None:
    other = replace(factories.oracle(), oracle="liveness", examined=23, unit="checkpoints")
    result = factories.result(oracles=(factories.oracle(examined=5012), other))
    done = soaked(Chapters(result), tmp_path, wanted=1)

    (chapter,) = done.chapters
    assert 5012 == chapter.rows
    assert sum(job.counts.completed for job in result.jobs) == chapter.checkpoints


def test_the_head_says_machine_date_versions_and_command_and_names_no_host(tmp_path: Path) -> None:
    newer = (*VALID.components, Component(name="flink", version="1.20.4", origin="pulled"))
    soaked(Chapters(VALID, replace(VALID, components=newer)), tmp_path, wanted=2)

    text = (tmp_path / "soak.md").read_text()
    assert "- date: 2026-07-06T10:15:00+00:00" in text
    assert f"{head().cores} cores, {head().memory_gib:g} GiB memory" in text
    assert "- versions: flink 1.20.3, paimon 1.3.1, flink 1.20.4, harness " in text
    assert "- command: `./run harness soak 3 --seed 100`" in text
    assert str(tmp_path) not in text
