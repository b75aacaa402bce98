"""junit.xml: nothing but VALID passes, nothing is ever skipped, and what is wrong is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import factories
import pytest

from harness.model import HARNESS_FAILED, Check, Finding, RunResult, Severity, Verdict
from harness.report import junit


def suite_of(result: RunResult) -> ElementTree.Element:
    root = ElementTree.fromstring(junit.render(result))  # noqa: S314 - our own text
    (suite,) = root
    return suite


def outcomes(result: RunResult) -> dict[str, list[str]]:
    return {
        str(case.get("name")): [part.tag for part in case if part.tag != "system-out"]
        for case in suite_of(result).iter("testcase")
    }


def counts(result: RunResult) -> dict[str, str | None]:
    return {name: suite_of(result).get(name) for name in ("tests", "failures", "errors", "skipped")}


def text_of(result: RunResult) -> str:
    return "\n".join(suite_of(result).itertext())


FAULT = "1 kill-taskmanager on taskmanager-1"
STOP = "2 stop-with-savepoint on the jobs"


def test_a_valid_run_is_one_passing_case_per_oracle_and_fault() -> None:
    result = factories.result()

    expected = {"primary-key": [], FAULT: [], STOP: []}
    assert expected == outcomes(result)
    expected_counts = {"tests": "3", "failures": "0", "errors": "0", "skipped": "0"}
    assert expected_counts == counts(result)


def test_an_invalid_oracle_is_a_failure_with_its_finding_whole() -> None:
    spoiled = factories.oracle(Verdict.INVALID, findings=(factories.MISSING_ROWS,))
    result = factories.result(verdict=Verdict.INVALID, exit_code=1, oracles=(spoiled,))

    text = text_of(result)

    expected = {"primary-key": ["failure"], FAULT: [], STOP: []}
    assert expected == outcomes(result)
    finding = factories.MISSING_ROWS
    for part in (finding.what, finding.where, finding.expected, finding.actual, finding.todo):
        assert part in text
    assert all(example in text for example in finding.examples)
    assert result.reproduce in text


def test_an_unknown_oracle_is_an_error_and_never_a_skip() -> None:
    result = factories.result(
        verdict=Verdict.UNKNOWN, exit_code=2, oracles=(factories.oracle(Verdict.UNKNOWN),)
    )

    expected = {"primary-key": ["error"], FAULT: [], STOP: []}
    assert expected == outcomes(result)
    expected_counts = {"tests": "3", "failures": "0", "errors": "1", "skipped": "0"}
    assert expected_counts == counts(result)


def test_a_valid_that_examined_nothing_is_an_error() -> None:
    result = factories.result(oracles=(factories.oracle(Verdict.VALID, examined=0),))

    expected = ["error"]
    assert expected == outcomes(result)["primary-key"]


def test_a_fault_that_did_not_bite_is_an_error_that_names_the_failed_check() -> None:
    result = factories.result(verdict=Verdict.UNKNOWN, exit_code=2, faults=(factories.proof(bit=False),))

    expected = {"primary-key": [], FAULT: ["error"]}
    assert expected == outcomes(result)
    assert "not held: tasks lost: expected at least 1, got 0" in text_of(result)


def test_the_same_fault_twice_is_two_cases() -> None:
    result = factories.result(faults=(factories.proof(), factories.proof()))

    expected = {"primary-key", FAULT, "2 kill-taskmanager on taskmanager-1"}
    assert expected == set(outcomes(result))


def test_a_failure_of_the_harness_is_an_error_with_what_to_do() -> None:
    result = factories.result(
        verdict=Verdict.UNKNOWN,
        exit_code=HARNESS_FAILED,
        failure="node mysql did not come up",
        failure_todo="see mysql.log",
    )

    expected = {"primary-key": [], FAULT: [], STOP: [], "harness": ["error"]}
    assert expected == outcomes(result)
    assert "node mysql did not come up\n→ see mysql.log" in text_of(result)


def test_a_failure_that_says_nothing_is_an_error_all_the_same() -> None:
    expected = ["error"]
    assert expected == outcomes(factories.result(exit_code=HARNESS_FAILED))["harness"]


def test_a_run_without_oracles_never_passes() -> None:
    result = factories.result(oracles=(), faults=())

    expected = {"oracles": ["error"]}
    assert expected == outcomes(result)


@pytest.mark.parametrize(
    ("verdict", "exit_code", "outcome"),
    [
        (Verdict.UNKNOWN, 2, "error"),
        (Verdict.INVALID, 1, "failure"),
        (Verdict.VALID, 2, "error"),
    ],
)
def test_a_run_that_is_worse_than_its_parts_never_passes(
    verdict: Verdict, exit_code: int, outcome: str
) -> None:
    result = factories.result(verdict=verdict, exit_code=exit_code)

    expected = [outcome]
    assert expected == outcomes(result)["verdict"]


def test_the_suite_says_what_ran() -> None:
    properties = {
        str(item.get("name")): item.get("value") for item in suite_of(factories.result()).iter("property")
    }

    expected = {
        "run": factories.RUN,
        "scenario": "kill-taskmanager",
        "profile": "fast",
        "seed": "20260706",
        "config_hash": "sha256:0123abcd",
        "verdict": "VALID",
        "components": "flink 1.20.3 (built from PyPI and Maven Central); paimon 1.3.1 (Maven Central)",
        "reproduce": "harness run kill-taskmanager --seed 20260706 --profile fast",
    }
    assert expected == properties


def test_text_that_xml_does_not_take_leaves_the_file_readable() -> None:
    nasty = '\x1b[31mred\x1b[0m \x00 \ud800 <b> & "quotes" ]]> ☃'
    finding = Finding(code="X", severity=Severity.ERROR, what=nasty, expected=nasty, examples=(nasty,))
    result = factories.result(
        failure=nasty,
        reproduce=nasty,
        oracles=(factories.oracle(Verdict.INVALID, findings=(finding,)),),
        components=(),
    )

    text = text_of(result)

    assert 'red \ufffd \ufffd <b> & "quotes" ]]> ☃' in text
    assert "\x1b" not in text


def test_a_proof_without_a_check_says_that_nothing_proves_it() -> None:
    bare = replace(factories.proof(), checks=())

    (case,) = suite_of(factories.result(faults=(bare,))).iter("error")

    expected = "the fault did not bite: nothing proves it: no check was made"
    assert expected == case.get("message")


def test_checks_that_did_not_hold_are_in_the_text_of_an_oracle() -> None:
    check = Check(name="keys", expected="10", actual="9", held=False)
    result = factories.result(oracles=(replace(factories.oracle(Verdict.INVALID), checks=(check,)),))

    assert "keys: expected 10, got 9" in text_of(result)


def test_the_file_lies_in_the_folder_of_the_run_and_says_it_is_utf_8(tmp_path: Path) -> None:
    path = junit.save(factories.result(), tmp_path)

    assert tmp_path / "junit.xml" == path
    assert path.read_bytes().startswith(b'<?xml version="1.0" encoding="utf-8"?>')
