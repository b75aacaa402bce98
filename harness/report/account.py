"""A verdict in words that a person can sign: what was found, what it holds for, what voids it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.model import FaultProof, RunResult, Severity, Verdict
from harness.report.causes import harness_failed
from harness.report.snapshot_proof import proofs
from harness.report.wording import MARKS, duration, fault_title, joined, one_line, run_verdict, shown_verdict


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that a verdict rests on."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Account:
    """`mark` is a shape beside the word, so that it does not hang on colour. `voided_by` is empty unless
    the run is VALID: only that can be voided.
    """

    word: str
    mark: str
    headline: str
    holds_for: tuple[Fact, ...]
    voided_by: tuple[str, ...]


def account(result: RunResult) -> Account:
    """The verdict of a run, in words."""
    word, mark, headline = _verdict(result)
    return Account(
        word=word,
        mark=mark,
        headline=headline,
        holds_for=_facts(result),
        voided_by=_voids(result) if word == Verdict.VALID.value else (),
    )


def landed(result: RunResult) -> tuple[FaultProof, ...]:
    """The faults that proved that they bit."""
    return tuple(proof for proof in result.faults if proof.bit)


def _verdict(result: RunResult) -> tuple[str, str, str]:
    if harness_failed(result):
        return "HARNESS FAILED", "!", "The harness itself failed. This says nothing about the pipeline."
    verdict = run_verdict(result)
    if verdict is Verdict.INVALID:
        return (
            verdict.value,
            MARKS[verdict.value],
            "Exactly-once did not hold. The causes below name what was seen.",
        )
    if verdict is Verdict.UNKNOWN:
        return (
            verdict.value,
            "?",
            "This run proves nothing: neither that exactly-once held, nor that it did not.",
        )
    faults = landed(result)
    but = f" With reservations: {reservations(result)[0]}." if reservations(result) else ""
    through = f" through {joined(item.fault for item in faults)}" if faults else ", with no fault injected"
    return (
        verdict.value,
        MARKS[verdict.value],
        f"Exactly-once held on {joined(table.sink for table in result.tables) or 'the sink'}{through}: "
        f"everything that was looked at was there once, with the right values.{but}",
    )


def reservations(result: RunResult) -> tuple[str, ...]:
    """What the oracles warn of although they let it pass: known limits that the scenario accepts."""
    return tuple(
        one_line(f"{finding.where}: {finding.what}" if finding.where else finding.what)
        for oracle in result.oracles
        for finding in oracle.findings
        if finding.severity is Severity.WARNING
    )


def _facts(result: RunResult) -> tuple[Fact, ...]:
    checkpoints = sum(job.counts.completed for job in result.jobs)
    fences = len({fence.mark.number for fence in result.fences})
    facts = [
        ("Versions", ", ".join(f"{item.name} {item.version}" for item in result.components)),
        ("Configuration", f"{result.config_hash} (profile {result.profile})"),
        ("Tables", "; ".join(f"{table.source} → {table.sink}" for table in result.tables)),
        ("Seed", str(result.seed)),
        ("Faults that landed", _landed(result)),
        ("Examined", _examined(result)),
        ("Progress", f"{checkpoints:,} checkpoints completed, {fences} fences"),
    ]
    if reservations(result):
        facts.append(("Reservations", _listed(reservations(result))))
    if result.workload is not None:
        done = result.workload
        text = f"{done.operations:,} row changes in {done.transactions:,} transactions"
        facts.insert(4, ("Load", f"{text}, {duration(done.seconds)}"))
    return tuple(Fact(name=name, text=one_line(text) or "not known") for name, text in facts)


def _landed(result: RunResult) -> str:
    faults = landed(result)
    return (
        f"{len(faults)} of {len(result.faults)}: " + _listed(map(fault_title, faults)) if faults else "none"
    )


def _examined(result: RunResult) -> str:
    return _listed(f"{item.examined:,} {item.unit} ({item.oracle})" for item in result.oracles) or "nothing"


def _voids(result: RunResult) -> tuple[str, ...]:
    judged = sum(shown_verdict(item) is Verdict.VALID for item in result.oracles)
    voids = [
        "another version of any component, or another setting: either changes the configuration hash",
        "a fault that is not among those that landed, a longer outage, or more of them in one life of a job",
        "a heavier or a different load, other tables, more data than this run committed",
    ]
    if result.profile_differences:
        count = len(result.profile_differences)
        differ = "1 value differs" if count == 1 else f"{count} values differ"
        voids.append(f"the guide's own profile: {differ} here, each listed under Configuration")
    placed = proofs(result) and all(proof.proven for proof in proofs(result))
    unseen = (
        f"such as {'a snapshot before the first' if placed else 'a wrong state that healed before a'} fence"
    )
    return (*voids, f"whatever the {judged} oracles below do not look at, {unseen}")


def _listed(items: Iterable[str]) -> str:
    return "; ".join(items)
