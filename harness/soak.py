"""A soak: the same scenario many times in a row with seeds of its own, and one table of how each went."""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

from harness.acceptance import Accepted
from harness.errors import HarnessError
from harness.model import HARNESS_FAILED, Component, FaultProof, Verdict
from harness.record import Record
from harness.report.tables import markdown
from harness.report.wording import duration, one_line, run_verdict
from harness.runs import exit_code, was_interrupted

SCHEMA_VERSION = 1
FAILED = "HARNESS FAILED"
GIB = 1024**3


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """A fault of a chapter: from injection until every task ran again; -1 when it never came to that."""

    fault: str
    bit: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One run of a soak. `checkpoints` counts the completed ones of all jobs in all their lives,
    `rows` what all oracles that examine rows looked at. `outcome` is a verdict or HARNESS FAILED;
    `trace` says where a crash of the harness was.
    """

    number: int
    seed: int
    outcome: str
    exit_code: int
    seconds: float
    recoveries: tuple[Recovery, ...]
    checkpoints: int
    rows: int
    run: str
    failure: str = ""
    trace: str = ""


@dataclass(frozen=True, kw_only=True)
class Head:
    """What a soak holds for: the machine, the date, and what ran. `components` are those of all chapters."""

    scenario: str
    profile: str
    first_seed: int
    started_at: str
    system: str
    cores: int
    memory_gib: float
    harness: str
    reproduce: str
    components: tuple[Component, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Soak:
    """A soak so far. `wanted` chapters were asked for; `ended` says why there are fewer, if so."""

    schema_version: int
    head: Head
    wanted: int
    chapters: tuple[Chapter, ...]
    seconds: float
    stopped: bool = False
    ended: str = ""

    @property
    def exit_code(self) -> int:
        """The worst chapter's, INVALID before a failed harness before UNKNOWN; 2 when it was stopped."""
        codes = {chapter.exit_code for chapter in self.chapters} | ({2} if self.stopped else set())
        return next((code for code in (1, HARNESS_FAILED, 2, 0) if code in codes), 2)

    @property
    def counts(self) -> str:
        """How many chapters ended how, and in what time; one line."""
        words = [*(verdict.value for verdict in Verdict), FAILED]
        each = ", ".join(f"{self._count(word)} {word}" for word in words)
        ended = f"; {self.ended}" if self.ended else ""
        return f"{len(self.chapters)} of {self.wanted} chapters in {duration(self.seconds)}: {each}{ended}"

    def _count(self, word: str) -> int:
        return sum(chapter.outcome == word for chapter in self.chapters)


_RECORD = Record(Soak, version=SCHEMA_VERSION, what="a soak")


def soak(
    run_chapter: Callable[[int], Accepted],
    *,
    head: Head,
    wanted: int,
    folder: Path,
    minutes: float | None = None,
    tell: Callable[[Chapter], None] = lambda _: None,
    clock_s: Callable[[], float] = time.monotonic,
) -> Soak:
    """Run `wanted` chapters with the seeds from `head.first_seed` on; none begins after `minutes`.

    `run_chapter` runs one, given its seed; `tell` is told how it ended. Goes on after whatever a chapter
    ends with, but for Ctrl-C. soak.md and soak.json in `folder` are written anew after each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    started = clock_s()
    done = Soak(schema_version=SCHEMA_VERSION, head=head, wanted=wanted, chapters=(), seconds=0)
    for number in range(1, wanted + 1):
        if minutes is not None and clock_s() - started >= minutes * 60:
            done = replace(done, ended=f"the {minutes:g} minutes were over")
            break
        seed = head.first_seed + number - 1
        began = clock_s()
        try:
            accepted = run_chapter(seed)
        except KeyboardInterrupt:
            done = replace(done, stopped=True, ended="stopped by the user")
            break
        except Exception as error:  # noqa: BLE001 - a soak goes on; the row says that this one proves nothing
            chapter = _broken(number, seed, error, clock_s() - began)
        else:
            chapter = _chapter(number, seed, accepted)
            parts = dict.fromkeys((*done.head.components, *accepted.result.components))
            done = replace(done, head=replace(done.head, components=tuple(parts)))
            if was_interrupted(accepted.result):
                done = replace(done, stopped=True, ended="stopped by the user")
        done = replace(done, chapters=(*done.chapters, chapter), seconds=round(clock_s() - started, 1))
        save(done, folder)
        tell(chapter)
        if done.stopped:
            return done
    done = replace(done, seconds=round(clock_s() - started, 1))
    save(done, folder)
    return done


def head_of(*, scenario: str, profile: str, seed: int, reproduce: str, now: datetime | None = None) -> Head:
    """The head of a soak that begins now on this machine. It names neither host nor user."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 0
    return Head(
        scenario=scenario,
        profile=profile,
        first_seed=seed,
        started_at=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        system=f"{platform.system()} {platform.machine()}",
        cores=cores,
        memory_gib=round(psutil.virtual_memory().total / GIB, 1),
        harness=metadata.version("flink-paimon-harness"),
        reproduce=reproduce,
    )


def save(done: Soak, folder: Path) -> None:
    """Write soak.md and soak.json."""
    _RECORD.write(done, folder / "soak.json")
    partial = folder / "soak.md.partial"
    partial.write_text(page(done), encoding="utf-8")
    partial.replace(folder / "soak.md")


def load(folder: Path) -> Soak:
    """The soak in a folder. Raises UsageError when there is none."""
    return _RECORD.read(folder / "soak.json")


def page(done: Soak) -> str:
    """The soak as a Markdown page: what it holds for, a row for each chapter, the counts last."""
    head = done.head
    versions = ", ".join(f"{item.name} {item.version}" for item in head.components) or "none ran"
    facts = [
        f"- date: {head.started_at}",
        f"- machine: {head.cores} cores, {head.memory_gib:g} GiB memory, {head.system}",
        f"- scenario: {head.scenario}, profile {head.profile}, seeds from {head.first_seed} on",
        f"- versions: {versions}, harness {head.harness}, Python {platform.python_version()}",
        f"- command: `{head.reproduce}`",
    ]
    said = [
        f"- chapter {chapter.number}: {one_line(chapter.failure)}"
        for chapter in done.chapters
        if chapter.failure
    ]
    parts = [
        f"# Soak: {head.scenario}, {len(done.chapters)} in a row",
        "\n".join(facts),
        markdown(_rows(done.chapters)),
        "A fault's time is from its injection until every task ran again. Checkpoints are the completed\n"
        "ones of all jobs; rows are those that the oracles compared.",
        *(["\n".join(said)] if said else []),
        done.counts,
    ]
    return "\n\n".join(parts) + "\n"


def _rows(chapters: tuple[Chapter, ...]) -> list[tuple[str, ...]]:
    widest = max(chapters, key=lambda chapter: len(chapter.recoveries), default=None)
    faults = [item.fault for item in widest.recoveries] if widest else []
    names = [f"{number} {fault}" for number, fault in enumerate(faults, start=1)]
    head = ("#", "seed", "verdict", "time", *names, "checkpoints", "rows", "report")
    return [head, *(_row(chapter, len(names)) for chapter in chapters)]


def _row(chapter: Chapter, faults: int) -> tuple[str, ...]:
    recoveries = [_shown(item) for item in chapter.recoveries]
    return (
        str(chapter.number),
        str(chapter.seed),
        chapter.outcome,
        duration(chapter.seconds),
        *recoveries,
        *["-"] * (faults - len(recoveries)),
        f"{chapter.checkpoints:,}",
        f"{chapter.rows:,}",
        chapter.run or "-",
    )


def _shown(recovery: Recovery) -> str:
    took = duration(recovery.seconds) if recovery.seconds >= 0 else "not recovered"
    return took if recovery.bit else f"{took}, no bite"


def _chapter(number: int, seed: int, accepted: Accepted) -> Chapter:
    result = accepted.result
    code = exit_code(result)
    return Chapter(
        number=number,
        seed=seed,
        outcome=FAILED if code == HARNESS_FAILED else run_verdict(result).value,
        exit_code=code,
        seconds=result.seconds,
        recoveries=tuple(_recovery(proof) for proof in result.faults),
        checkpoints=sum(job.counts.completed for job in result.jobs),
        rows=sum(item.examined for item in result.oracles if item.unit.split()[-1:] == ["rows"]),
        run=accepted.folder.name,
        failure=result.failure,
    )


def _recovery(proof: FaultProof) -> Recovery:
    came_back = proof.recovered_at_ms > 0 and proof.injected_at_ms > 0
    seconds = (proof.recovered_at_ms - proof.injected_at_ms) / 1000 if came_back else -1.0
    return Recovery(fault=proof.fault, bit=proof.bit, seconds=seconds)


def _broken(number: int, seed: int, error: Exception, seconds: float) -> Chapter:
    said = error.what if isinstance(error, HarnessError) else "".join(traceback.format_exception_only(error))
    return Chapter(
        number=number,
        seed=seed,
        outcome=FAILED,
        exit_code=HARNESS_FAILED,
        seconds=round(seconds, 1),
        recoveries=(),
        checkpoints=0,
        rows=0,
        run="",
        failure=said or type(error).__name__,
        trace="" if isinstance(error, HarnessError) else "".join(traceback.format_exception(error)),
    )
