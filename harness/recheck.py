"""Judge a run again from its evidence alone: no engine, no network, and the verdict must be the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness import evidence as evidence_files
from harness import oracles
from harness.errors import UsageError
from harness.model import HARNESS_FAILED, Evidence, OracleResult, RunResult, Verdict, worst
from harness.report import result_json
from harness.report.wording import fault_verdict, run_verdict, shown_verdict

Judge = Callable[[Evidence], tuple[OracleResult, ...]]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What an oracle said then and says now, each as a word and a count; "-" where it was not asked."""

    oracle: str
    recorded: str
    again: str

    @property
    def agrees(self) -> bool:
        return self.recorded == self.again


@dataclass(frozen=True, kw_only=True)
class Rechecked:
    """A run as it was recorded and as it is judged again, side by side.

    `carried` says what of the verdict comes from the run itself and not from its evidence.
    """

    recorded: RunResult
    again: RunResult
    comparisons: tuple[Comparison, ...]
    carried: str

    @property
    def agrees(self) -> bool:
        """Whether every oracle, the verdict and the exit code are as they were recorded."""
        return (
            all(comparison.agrees for comparison in self.comparisons)
            and self.recorded.verdict is self.again.verdict
            and self.recorded.exit_code == self.again.exit_code
        )

    @property
    def exit_code(self) -> int:
        """The verdict's code, judged again; 3 when it is not what was recorded."""
        return self.again.exit_code if self.agrees else HARNESS_FAILED


def recheck(folder: Path, *, judge: Judge | None = None) -> Rechecked:
    """Judge the run in `folder` again, by the oracles that its scenario asked for.

    Raises UsageError when result or evidence is missing, damaged, of another version or another run,
    or asks for an oracle that there is none of.
    """
    recorded = result_json.load(folder)
    evidence = evidence_files.load(folder / "evidence")
    _require_same_run(recorded, evidence)
    _require_oracles(evidence)
    _require_files(evidence)
    judged = (judge or _judge)(evidence)
    carried, own = _carried(recorded, evidence)
    again = replace(recorded, oracles=judged, faults=evidence.faults, verdict=own, exit_code=0)
    verdict = run_verdict(again)
    failed = recorded.failure or recorded.exit_code == HARNESS_FAILED
    again = replace(again, verdict=verdict, exit_code=HARNESS_FAILED if failed else verdict.exit_code)
    return Rechecked(
        recorded=recorded,
        again=again,
        comparisons=_compared(recorded.oracles, again.oracles),
        carried=carried,
    )


def _judge(evidence: Evidence) -> tuple[OracleResult, ...]:
    return oracles.judge(evidence, evidence.oracles)


def _carried(recorded: RunResult, evidence: Evidence) -> tuple[str, Verdict]:
    """What the run itself says of its verdict, which no evidence can better; VALID when it says nothing."""
    parts = worst(
        [
            *(shown_verdict(oracle) for oracle in recorded.oracles),
            *(fault_verdict(proof) for proof in recorded.faults),
        ]
    )
    if recorded.failure or recorded.exit_code == HARNESS_FAILED:
        said = f"the harness failed: {recorded.failure or 'it does not say why'}"
        return said, worst([Verdict.UNKNOWN, recorded.verdict])
    if evidence.interrupted:
        return f"the run was interrupted: {evidence.interrupted}", Verdict.UNKNOWN
    if worst([recorded.verdict, parts]) is not parts:
        return f"the run was {recorded.verdict.value} though none of its parts was", recorded.verdict
    return "", Verdict.VALID


def _compared(recorded: Iterable[OracleResult], again: Iterable[OracleResult]) -> tuple[Comparison, ...]:
    then, now = ({item.oracle: _said(item) for item in side} for side in (recorded, again))
    return tuple(
        Comparison(oracle=name, recorded=then.get(name, "-"), again=now.get(name, "-"))
        for name in dict.fromkeys((*then, *now))
    )


def _said(oracle: OracleResult) -> str:
    return f"{shown_verdict(oracle).value}  {oracle.examined:,} {oracle.unit}".rstrip()


def _require_same_run(recorded: RunResult, evidence: Evidence) -> None:
    other = [
        name
        for name in ("tables", "faults", "fences", "travels", "jobs", "snapshots", "workload")
        if getattr(recorded, name) != getattr(evidence, name)
    ]
    if other:
        raise UsageError(
            f"{evidence.folder}: this is not the evidence that run {recorded.run} was judged by: "
            f"its {' and '.join(other)} differ from those in {result_json.NAME}",
            todo="take result and evidence from the same, unchanged folder of a run",
        )


def _require_oracles(evidence: Evidence) -> None:
    unknown = [name for name in evidence.oracles if name not in oracles.ORACLES]
    if unknown:
        raise UsageError(
            f"{evidence.folder}: asks for {', '.join(unknown)}, expected oracles of this harness: "
            f"{', '.join(oracles.ORACLES)}",
            todo="judge it with the version of the harness that ran it",
        )


def _require_files(evidence: Evidence) -> None:
    folder = Path(evidence.folder)
    damaged = [f"{name}: {said}" for name in files_of(evidence) if (said := _damage(folder / name))]
    if damaged:
        raise UsageError(
            f"{folder}: the evidence is not whole:\n  " + "\n  ".join(damaged),
            todo="a run whose evidence is gone can't be judged again; run the scenario again",
        )


def files_of(evidence: Evidence) -> tuple[str, ...]:
    """The Parquet files that the evidence names, each once; ledgers are there once the workload ran."""
    ledgers = [table.ledger_file for table in evidence.tables] if evidence.workload else []
    named = [
        *ledgers,
        *(name for fence in evidence.fences for name in (fence.source_rows, fence.sink_rows)),
        *(travel.sink_rows for travel in evidence.travels),
        *(state.sink_rows for state in evidence.states),
        *(name for history in evidence.histories for name in (history.changes, history.changelog)),
        *(name for commit in evidence.commits for name in (commit.entries, commit.files)),
        *(binlog.operations for binlog in evidence.binlogs),
        *(sums.rows for sums in evidence.aggregates),
    ]
    return tuple(dict.fromkeys(name for name in named if name))


def _damage(file: Path) -> str:
    """What is wrong with a Parquet file; empty when every row of it can be read."""
    try:
        with pq.ParquetFile(file) as rows:
            for _ in rows.iter_batches():
                continue
    except (OSError, pa.ArrowException) as error:
        return f"{type(error).__name__}: {error}"
    return ""
