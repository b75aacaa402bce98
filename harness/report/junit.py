"""junit.xml: a run as one test suite. VALID passes, INVALID is a failure, UNKNOWN an error, never a skip."""

from __future__ import annotations

import io
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from harness.model import HARNESS_FAILED, FaultProof, OracleResult, RunResult, Verdict
from harness.report.wording import (
    failed_checks,
    fault_title,
    fault_verdict,
    finding_lines,
    first_finding,
    one_line,
    printable,
    run_verdict,
    shown_verdict,
)

NAME = "junit.xml"


def save(result: RunResult, folder: Path) -> Path:
    """Write junit.xml into the run's folder and return its path."""
    path = folder / NAME
    path.write_bytes(render(result))
    return path


def render(result: RunResult) -> bytes:
    """The run as JUnit XML in UTF-8: one suite; one case per oracle and per fault proof.

    Further cases are only ever bad ones: `harness` for a failure of the harness, `oracles` when
    there was none, `verdict` when the run is worse than any of its cases. DESIGN, rule 7.
    """
    suite = TestSuite(one_line(f"{result.scenario} {result.run}"))
    suite.timestamp = one_line(result.started_at).removesuffix("Z")
    for name, value in _properties(result):
        suite.add_property(name, one_line(value))
    cases = [
        *(_oracle_case(result, oracle) for oracle in result.oracles),
        *(_fault_case(result, proof, number) for number, proof in enumerate(result.faults, start=1)),
        *_further_cases(result),
    ]
    suite.add_testcases(cases)
    report = JUnitXml(one_line(result.scenario))
    report.add_testsuite(suite)
    report.tests, report.failures = suite.tests, suite.failures
    report.errors, report.skipped = suite.errors, suite.skipped
    for level in (suite, report):
        level.time = result.seconds
    content = io.BytesIO()
    report.write(content, pretty=True)
    return content.getvalue()


def _properties(result: RunResult) -> tuple[tuple[str, str], ...]:
    return (
        ("run", result.run),
        ("scenario", result.scenario),
        ("profile", result.profile),
        ("seed", str(result.seed)),
        ("config_hash", result.config_hash),
        ("verdict", run_verdict(result).value),
        (
            "components",
            "; ".join(f"{item.name} {item.version} ({item.origin})" for item in result.components),
        ),
        ("reproduce", result.reproduce),
    )


def _oracle_case(result: RunResult, oracle: OracleResult) -> TestCase:
    verdict = shown_verdict(oracle)
    lines = [f"examined {oracle.examined} {oracle.unit}", *failed_checks(oracle.checks)]
    for finding in oracle.findings:
        lines += finding_lines(finding)
    return _case(result, "oracle", oracle.oracle, verdict, first_finding(oracle), lines)


def _fault_case(result: RunResult, proof: FaultProof, number: int) -> TestCase:
    failed = failed_checks(proof.checks) or ("nothing proves it: no check was made",)
    message = "" if proof.bit else f"the fault did not bite: {'; '.join(failed)}"
    seconds = max(0, proof.recovered_at_ms - proof.injected_at_ms) / 1000
    name = f"{number} {fault_title(proof)}"
    lines = [
        f"{'held' if check.held else 'not held'}: {check.name}: expected {check.expected}, got {check.actual}"
        for check in proof.checks
    ]
    return _case(result, "fault", name, fault_verdict(proof), message, lines, seconds=seconds)


def _further_cases(result: RunResult) -> list[TestCase]:
    cases = []
    if result.failure or result.exit_code == HARNESS_FAILED:
        what = result.failure or "the harness failed and does not say why"
        lines = [what, *([f"→ {result.failure_todo}"] if result.failure_todo else [])]
        cases.append(_case(result, "run", "harness", Verdict.UNKNOWN, what, lines, kind="HarnessError"))
    if not result.oracles:
        cases.append(
            _case(result, "run", "oracles", Verdict.UNKNOWN, "no oracle judged this run", [result.reproduce])
        )
    parts = [shown_verdict(item) for item in result.oracles] + [fault_verdict(item) for item in result.faults]
    own = result.verdict
    if own is Verdict.VALID and result.exit_code != 0 and not result.failure:
        own = Verdict.UNKNOWN
    if own is not Verdict.VALID and own not in parts and result.exit_code != HARNESS_FAILED:
        message = f"the run is {own.value} (exit code {result.exit_code}) though none of its parts is"
        cases.append(_case(result, "run", "verdict", own, message, [message]))
    return cases


def _case(
    result: RunResult,
    group: str,
    name: str,
    verdict: Verdict,
    message: str,
    lines: list[str],
    *,
    seconds: float = 0.0,
    kind: str = "",
) -> TestCase:
    case = TestCase(one_line(name), classname=one_line(f"{result.scenario}.{group}"), time=seconds)
    text = "\n".join(printable(line) for line in lines)
    if verdict is Verdict.VALID:
        case.system_out = text
        return case
    outcome = Failure if verdict is Verdict.INVALID else Error
    ending = outcome(one_line(message), kind or verdict.value)
    ending.text = f"{text}\nreproduce: {printable(result.reproduce)}"
    case.result = [ending]
    return case
