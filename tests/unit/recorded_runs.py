"""Folders of runs that are over, as a run leaves them: judged, with result and evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import evidence_folders
import factories

from harness import evidence as evidence_files
from harness import oracles
from harness.model import Evidence, RunResult, worst
from harness.report import result_json
from harness.report.wording import run_verdict


def clean(run: Path) -> Evidence:
    """A clean run that asks every oracle."""
    return replace(evidence_folders.evidence(run / "evidence"), oracles=tuple(oracles.ORACLES))


def record(folder: Path, evidence: Evidence, **changes: Any) -> RunResult:
    """Judge the evidence and write what a run would; the result's fields may be changed."""
    judged = oracles.judge(evidence, evidence.oracles)
    verdict = worst([oracle.verdict for oracle in judged])
    result = factories.result(
        schema_version=result_json.SCHEMA_VERSION,
        tables=evidence.tables,
        oracles=judged,
        faults=evidence.faults,
        fences=evidence.fences,
        travels=evidence.travels,
        jobs=evidence.jobs,
        snapshots=evidence.snapshots,
        workload=evidence.workload,
        verdict=verdict,
    )
    result = replace(result, verdict=run_verdict(result))
    result = replace(result, **{"exit_code": result.verdict.exit_code, **changes})
    evidence_files.save(evidence, folder / "evidence")
    result_json.save(result, folder)
    return result
