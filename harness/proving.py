"""Prove that the oracles of a run can fail: plant defects into copies of its evidence, and judge each copy.

What is asked of a VALID run here: had the pipeline, a reader or the harness failed in this way, would the
verdict have said so? Beside the defects there is a control, where everything is written anew and nothing is
wrong: an oracle that does not pass it raises a false alarm.
"""

from __future__ import annotations

import difflib
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import evidence as evidence_files
from harness import oracles, recheck
from harness.defects import DEFECTS
from harness.defects.control import written_anew
from harness.defects.defect import Defect, Plant
from harness.defects.files import copied
from harness.errors import NoPlace, UsageError
from harness.model import Evidence, OracleResult, RunResult, Verdict
from harness.oracles import completeness
from harness.record import Record
from harness.report.tables import markdown
from harness.report.wording import first_finding, one_line, run_verdict, shown_verdict

SCHEMA_VERSION = 1
JSON, MARKDOWN = "prove.json", "prove.md"


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """An oracle that did not say VALID, and its heaviest finding."""

    oracle: str
    verdict: Verdict
    said: str


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One defect, planted and judged. `verdict` is the run's, and None where the defect has no place in it:
    `not_applicable` says why.

    `asked` are those of the defect's oracles that judge this run: each must come to `expected`.
    """

    defect: str
    what: str
    expected: Verdict
    asked: tuple[str, ...]
    verdict: Verdict | None
    alarms: tuple[Alarm, ...]
    not_applicable: str
    seconds: float

    @property
    def caught(self) -> bool:
        """Whether the run and each oracle that had to say the expected word."""
        said = {alarm.oracle: alarm.verdict for alarm in self.alarms}
        return (
            bool(self.asked)
            and self.verdict is self.expected
            and all(said.get(name) is self.expected for name in self.asked)
        )


@dataclass(frozen=True, kw_only=True)
class Score:
    """What became of all defects, and of the control: `false_alarms` are of evidence without a defect.

    `only` is the pattern that chose the defects. `every_oracle`: all oracles of the run judged each copy, not
    only those that must catch its defect.
    """

    schema_version: int
    run: str
    scenario: str
    seed: int
    only: str
    every_oracle: bool
    trials: tuple[Trial, ...]
    false_alarms: tuple[Alarm, ...]
    seconds: float

    @property
    def planted(self) -> tuple[Trial, ...]:
        """The defects that had a place in the run."""
        return tuple(trial for trial in self.trials if trial.verdict is not None)

    @property
    def missed(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.planted if not trial.caught)

    @property
    def holds(self) -> bool:
        """Whether something was planted, all of it was caught, and nothing else raised an alarm."""
        return bool(self.planted) and not self.missed and not self.false_alarms

    def __str__(self) -> str:
        caught, planted = len(self.planted) - len(self.missed), len(self.planted)
        return f"caught {caught} of {planted}, false alarms {int(bool(self.false_alarms))} of 1"


_RECORD = Record(Score, version=SCHEMA_VERSION, what="a score of planted defects")

Tell = Callable[[str, int, int], None]
"""Is told what is judged now, how many copies were, and of how many."""


def prove(
    folder: Path,
    *,
    seed: int | None = None,
    only: str = "*",
    every_oracle: bool = False,
    defects: Mapping[str, Defect] = DEFECTS,
    control: Plant = written_anew,
    tell: Tell = lambda what, done, total: None,  # noqa: ARG005 - nobody listens
) -> Score:
    """Plant every defect whose name matches the pattern `only` into the run in `folder`.

    The run's own files stay as they are. `seed` chooses rows and snapshots, the run's own by default; a
    defect is planted in the same way whatever else is. Raises UsageError when the run is not VALID, also
    judged again, or no defect has such a name.
    """
    begun = time.monotonic()
    chosen = _chosen(only, defects)
    valid = _valid(folder)
    evidence = evidence_files.load(folder / "evidence")
    bench = _Bench(evidence, valid, valid.seed if seed is None else seed, every_oracle=every_oracle)
    total = len(chosen) + 1
    tell("nothing", 0, total)
    _, alarms = bench.judged("control", control, bench.applied)
    trials = []
    for number, defect in enumerate(chosen, start=1):
        tell(defect.name, number, total)
        trials.append(bench.tried(defect))
    return Score(
        schema_version=SCHEMA_VERSION,
        run=valid.run,
        scenario=valid.scenario,
        seed=bench.seed,
        only=only,
        every_oracle=every_oracle,
        trials=tuple(trials),
        false_alarms=alarms,
        seconds=time.monotonic() - begun,
    )


def save(score: Score, folder: Path) -> None:
    """Write prove.json and prove.md into a run's folder."""
    _RECORD.write(score, folder / JSON)
    (folder / MARKDOWN).write_text(as_markdown(score), encoding="utf-8")


def as_markdown(score: Score) -> str:
    """The score as a page."""
    rows = [
        ("defect", "what is wrong", "expected", "verdict", "caught by"),
        *(cells(t) for t in score.trials),
    ]
    judged = "every oracle of the run" if score.every_oracle else "the oracles that must catch it"
    which = "all defects" if score.only == "*" else f"of all defects those named {one_line(score.only)}"
    lines = [
        f"# Planted defects: {one_line(score.run)}",
        "",
        f"Scenario {one_line(score.scenario)}, seed {score.seed}; {which}; each copy was judged by {judged}, "
        f"{score.seconds:.0f} s. {score}.",
        "",
        markdown(rows),
    ]
    lines += [f"\nFalse alarm of {alarm.oracle}: {alarm.said}" for alarm in score.false_alarms]
    return "\n".join(lines) + "\n"


def cells(trial: Trial) -> tuple[str, str, str, str, str]:
    """A trial as a row: the defect, what is wrong, the verdict expected and given, and who caught it."""
    if trial.verdict is None:
        return (trial.defect, trial.what, trial.expected.value, "not applicable", trial.not_applicable)
    caught = ", ".join(alarm.oracle for alarm in trial.alarms) or "none"
    verdict = trial.verdict.value if trial.caught else f"MISSED: {trial.verdict.value}"
    silent = [name for name in trial.asked if name not in {alarm.oracle for alarm in trial.alarms}]
    return (
        trial.defect,
        trial.what,
        trial.expected.value,
        verdict,
        f"{caught}; not by {', '.join(silent)}" if silent else caught,
    )


class _Bench:
    """Where copies of a run's evidence are damaged and judged."""

    def __init__(self, evidence: Evidence, valid: RunResult, seed: int, *, every_oracle: bool) -> None:
        self._evidence = evidence
        self._valid = valid
        self._every_oracle = every_oracle
        self.seed = seed
        self.applied = tuple(oracle.oracle for oracle in valid.oracles)
        """The oracles that judged the run, without those that had nothing to judge."""

    def tried(self, defect: Defect) -> Trial:
        begun = time.monotonic()
        asked = tuple(name for name in defect.caught_by if name in self.applied)
        verdict, alarms, why = None, tuple[Alarm, ...](), ""
        if asked:
            try:
                verdict, alarms = self.judged(
                    defect.name, defect.plant, self.applied if self._every_oracle else asked
                )
            except NoPlace as error:
                why = error.what
        else:
            why = f"the run asks for none of {', '.join(defect.caught_by)}"
        return Trial(
            defect=defect.name,
            what=defect.what,
            expected=defect.verdict,
            asked=asked,
            verdict=verdict,
            alarms=alarms,
            not_applicable=one_line(why),
            seconds=time.monotonic() - begun,
        )

    def judged(self, name: str, plant: Plant, names: tuple[str, ...]) -> tuple[Verdict, tuple[Alarm, ...]]:
        """The verdict of a run with such evidence, and the oracles among these that did not say VALID."""
        with TemporaryDirectory(prefix="prove-") as folder:
            copied(Path(self._evidence.folder), Path(folder))
            copy = replace(self._evidence, folder=folder)
            # Of text, so that a defect does not hang on which others are planted before it.
            planted = plant(copy, random.Random(f"{self.seed} {name}"))
            said = oracles.judge(planted, (completeness.NAME, *names))
        result = replace(self._valid, oracles=said, faults=planted.faults, verdict=Verdict.VALID)
        return run_verdict(result), tuple(_alarm(oracle) for oracle in said if _alarms(oracle))


def _alarms(oracle: OracleResult) -> bool:
    return shown_verdict(oracle) is not Verdict.VALID


def _alarm(oracle: OracleResult) -> Alarm:
    return Alarm(oracle=oracle.oracle, verdict=shown_verdict(oracle), said=first_finding(oracle))


def _chosen(only: str, defects: Mapping[str, Defect]) -> list[Defect]:
    chosen = [defect for name, defect in defects.items() if fnmatchcase(name, only)]
    if not chosen:
        near = difflib.get_close_matches(only, list(defects), n=1)
        raise UsageError(
            f"no defect has a name like {only!r}" + (f", did you mean {near[0]!r}" if near else ""),
            todo="`harness prove --list` names them all",
        )
    return chosen


def _valid(folder: Path) -> RunResult:
    """The run as it is judged again. Raises UsageError unless it was and is VALID."""
    done = recheck.recheck(folder)
    if not done.agrees or done.again.exit_code:
        raise UsageError(
            f"{folder.name}: recorded {done.recorded.verdict.value}, "
            f"judged again {done.again.verdict.value}; expected VALID both times, since in any other run "
            "a defect proves nothing",
            todo="give a VALID run; `harness recheck` says what is wrong with this one",
        )
    return done.again
