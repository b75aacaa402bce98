"""From a run's outcome to its result, and the result's files in the run's folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from harness.budget import outage_budget
from harness.history import History
from harness.model import HARNESS_FAILED, Component, RunResult, Setting, Verdict, worst
from harness.profiles import Profile
from harness.report import html, junit, markdown, result_json
from harness.report.visibility import progress_of
from harness.report.wording import run_verdict
from harness.runner import Outcome
from harness.scenario import Scenario


def result_of(
    outcome: Outcome,
    *,
    run: str,
    scenario: Scenario,
    profile: Profile,
    components: Sequence[Component],
    settings: Sequence[Setting],
    history: History,
    logs: Sequence[str],
    reproduce: str,
) -> RunResult:
    """The run's result. A failure of the harness or an interruption is never better than UNKNOWN."""
    evidence, failure = outcome.evidence, outcome.failure
    verdicts = [oracle.verdict for oracle in outcome.oracles]
    if failure or evidence.interrupted:
        verdicts.append(Verdict.UNKNOWN)
    phases = history.phases()
    started_at = datetime.fromtimestamp(phases[0].started_at_ms / 1000, tz=UTC)
    result = RunResult(
        schema_version=result_json.SCHEMA_VERSION,
        run=run,
        scenario=scenario.name,
        description=scenario.description,
        profile=profile.name,
        seed=scenario.seed,
        started_at=started_at.isoformat(timespec="seconds"),
        seconds=round(sum(phase.seconds for phase in phases), 3),
        verdict=worst(verdicts),
        exit_code=0,
        failure=failure.what if failure else "",
        failure_todo=failure.todo if failure else "",
        config_hash=config_hash(run, scenario, settings, components),
        components=tuple(components),
        settings=tuple(settings),
        profile_differences=profile.differences,
        unapplied_options=(*profile.adapted, *profile.unapplied),
        budget=outage_budget(profile.flink),
        tables=evidence.tables,
        oracles=outcome.oracles,
        faults=evidence.faults,
        fences=evidence.fences,
        travels=evidence.travels,
        jobs=evidence.jobs,
        snapshots=evidence.snapshots,
        progress=progress_of(evidence) if evidence.workload else (),
        positions=outcome.positions,
        workload=evidence.workload,
        phases=phases,
        events=history.events(),
        logs=tuple(logs),
        reproduce=reproduce,
    )
    verdict = run_verdict(result)
    return replace(result, verdict=verdict, exit_code=HARNESS_FAILED if failure else verdict.exit_code)


def save(result: RunResult, folder: Path) -> None:
    """Write result.json and every report into the run's folder, and point reports/latest at it."""
    folder.mkdir(parents=True, exist_ok=True)
    result_json.save(result, folder)
    render(result, folder)
    latest, fresh = folder.parent / "latest", folder.parent / f".latest-{result.run}"
    fresh.symlink_to(folder.name)
    fresh.replace(latest)


def render(result: RunResult, folder: Path) -> None:
    """Write every report that shows the result: all but result.json itself."""
    junit.save(result, folder)
    html.save(result, folder)
    markdown.save(result, folder)
    lines = [
        json.dumps({"at_ms": event.at_ms, "kind": event.kind, "node": event.node, "text": event.text})
        for event in result.events
    ]
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def config_hash(
    run: str, scenario: Scenario, settings: Sequence[Setting], components: Sequence[Component]
) -> str:
    """Twelve hex digits that change when scenario, settings or component versions do, not with the run."""
    text = json.dumps(
        {
            "scenario": scenario.model_dump(mode="json", by_alias=True),
            "settings": sorted((s.scope, s.key, s.value.replace(run, "${run}")) for s in settings),
            "components": sorted((c.name, c.version) for c in components),
        },
        sort_keys=True,
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]
