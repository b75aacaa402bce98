"""The registry of oracles: who is asked, in which order, and that no run is VALID for want of evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import evidence_folders
import factories
import pytest
from evidence_folders import history_of, rewritten, spoiled
from factories import BEHAVIOR_LOG, ORDERS, TABLES
from judging import KEYS, codes, empty, finding, judged, judged_by_all, without

from harness import oracles
from harness.model import Evidence, Severity, Verdict, worst
from harness.oracles import ORACLES, OracleKind


def test_a_clean_run_is_valid_by_every_oracle(evidence: Evidence) -> None:
    results = judged_by_all(evidence)

    assert dict.fromkeys(ORACLES, Verdict.VALID) == {name: result.verdict for name, result in results.items()}
    assert all(result.examined > 0 for result in results.values())
    assert all(check.held for result in results.values() for check in result.checks)
    assert [] == [code for result in results.values() for code in codes(result)]


def test_the_oracles_answer_in_the_order_of_the_registry(evidence: Evidence) -> None:
    results = oracles.judge(evidence, reversed(list(ORACLES)))

    assert list(ORACLES) == [result.oracle for result in results]


def test_completeness_is_asked_even_when_nobody_named_it(evidence: Evidence) -> None:
    results = oracles.judge(evidence, ["liveness"])

    assert ["completeness", "liveness"] == [result.oracle for result in results]


def test_a_run_that_was_meant_to_have_no_fault_is_not_asked_for_one(evidence: Evidence) -> None:
    jobs = tuple(replace(factories.job(table.name), restarts=0, failures=()) for table in TABLES)

    results = judged_by_all(replace(evidence, expected_faults=0, faults=(), states=(), jobs=jobs))

    assert "fault_effect" not in results
    assert "continuity" not in results
    assert {Verdict.VALID} == {result.verdict for result in results.values()}


def test_a_run_without_an_append_only_table_is_not_asked_for_one(evidence: Evidence) -> None:
    orders_only = replace(
        evidence,
        tables=(ORDERS,),
        fences=tuple(at for at in evidence.fences if at.mark.table == "orders"),
        states=tuple(state for state in evidence.states if state.table == "orders"),
        jobs=tuple(job for job in evidence.jobs if job.name == "orders"),
    )

    results = judged_by_all(orders_only)

    assert "append_exactly_once" not in results
    assert {Verdict.VALID} == {result.verdict for result in results.values()}


@pytest.mark.parametrize("name", ORACLES)
def test_nothing_examined_is_never_valid(evidence: Evidence, name: str) -> None:
    stop_that_never_was = replace(factories.stop_proof(), checks=())
    collected = ("fences", "jobs", "travels", "states", "histories", "commits", "binlogs", "aggregates")
    nothing: dict[str, Any] = dict.fromkeys(collected, ())

    result = judged(replace(evidence, **nothing, faults=(stop_that_never_was,), expected_fences=0), name)

    assert Verdict.UNKNOWN == result.verdict
    assert name == "fault_effect" or result.examined == 0


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@pytest.mark.parametrize("name", ORACLES)
def test_a_table_of_which_there_is_no_evidence_is_never_valid(
    evidence: Evidence, table: Any, name: str
) -> None:
    about = {
        "append_exactly_once": table.append_only,
        "apply_once": table.append_only,
        "changelog": not table.append_only,
    }
    if name == "fault_effect" or not about.get(name, True):
        return  # faults belong to no table, and some oracles are about one kind of table only
    unseen = replace(
        evidence,
        fences=tuple(at for at in evidence.fences if at.mark.table != table.name),
        travels=tuple(then for then in evidence.travels if then.table != table.name),
        states=tuple(state for state in evidence.states if state.table != table.name),
        histories=tuple(history for history in evidence.histories if history.table != table.name),
        commits=tuple(commit for commit in evidence.commits if commit.table != table.name),
        binlogs=tuple(binlog for binlog in evidence.binlogs if binlog.table != table.name),
        aggregates=tuple(sums for sums in evidence.aggregates if sums.table != table.name),
        jobs=tuple(job for job in evidence.jobs if job.name != table.name),
    )

    assert Verdict.UNKNOWN == judged(unseen, name).verdict


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"no parquet")])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_ledger_that_is_not_there_or_not_readable_is_unknown(
    evidence: Evidence, table: Any, damage: Callable[[Path], object]
) -> None:
    damage(Path(evidence.folder) / table.ledger_file)

    for name in ("reconciliation", "time_travel", "continuity", "source_truth"):
        result = judged(evidence, name)
        assert (Verdict.UNKNOWN, {"oracle-crashed"}) == (result.verdict, codes(result))


def test_a_run_whose_source_never_ran_is_judged_by_completeness_alone(evidence: Evidence) -> None:
    never = replace(evidence, workload=None, fences=(), faults=(), jobs=())
    for table in TABLES:
        (Path(never.folder) / table.ledger_file).unlink()

    results = judged_by_all(never)

    assert {"completeness": Verdict.UNKNOWN} == {name: result.verdict for name, result in results.items()}


def test_an_oracle_that_crashes_is_unknown_and_says_with_what(evidence: Evidence) -> None:
    last = evidence.fences[-1]
    beyond = replace(last, mark=replace(last.mark, operation=10_000))

    result = judged(replace(evidence, fences=(*evidence.fences[:-1], beyond)), "reconciliation")

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)
    assert finding(result, "oracle-crashed").actual.startswith("ValueError: the ledger holds operations")


@pytest.mark.parametrize("kind", ORACLES.values(), ids=list(ORACLES))
def test_every_oracle_says_what_must_hold_and_what_it_cannot_see(kind: OracleKind) -> None:
    assert kind.summary
    assert kind.blind_to


def test_every_finding_that_costs_a_run_its_valid_is_an_error_with_a_text(evidence: Evidence) -> None:
    broken = spoiled(evidence, "orders", sink=empty, travelled=empty)
    rewritten(broken, history_of(broken, "behavior-log").changes, empty)

    results = judged_by_all(replace(broken, faults=(), jobs=()))

    found = [item for result in results.values() for item in result.findings]
    assert {Severity.ERROR} == {item.severity for item in found}
    assert all(item.what for item in found)


@pytest.mark.parametrize("table", KEYS)
def test_a_row_lost_for_good_is_seen_wherever_it_can_be(evidence: Evidence, table: str) -> None:
    lost = evidence
    for number in (2, 3):
        lost = spoiled(lost, table, number, sink=without(KEYS[table]), travelled=without(KEYS[table]))

    results = judged_by_all(lost)

    seen = {name for name, result in results.items() if result.verdict is Verdict.INVALID}
    also = {"append_exactly_once"} if table == BEHAVIOR_LOG.name else set()
    assert {"reconciliation", "time_travel", "continuity"} | also == seen
    assert Verdict.INVALID is worst([result.verdict for result in results.values()])


def test_the_clean_evidence_is_the_run_that_it_claims_to_be(evidence: Evidence) -> None:
    numbers = {(at.mark.table, at.mark.number) for at in evidence.fences}

    assert evidence.expected_fences * len(evidence.tables) == len(numbers) == len(evidence.travels)
    assert [evidence_folders.STOP] * 2 == [state.fault for state in evidence.states]
