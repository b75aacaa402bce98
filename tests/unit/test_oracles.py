"""The oracles: each passes a clean run, and each catches every defect that is planted for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import evidence_folders
import factories
import pyarrow as pa
import pytest
from evidence_folders import FIRST_DAY, SECOND_DAY, Edit, Rows, living_job, with_last_fence

from harness import oracles
from harness.ledger import ROW_SCHEMA
from harness.model import (
    Evidence,
    FaultProof,
    Finding,
    JobFailure,
    OracleResult,
    Reading,
    Severity,
    TimeWindow,
    Verdict,
)
from harness.oracles import ORACLES, OracleKind
from harness.oracles.comparison import difference
from harness.source.orders import CONTRACT


class MakeRun(Protocol):
    """Makes evidence of a clean run, with defects planted at its last fence and fields changed."""

    def __call__(
        self, *, sink: Edit | None = None, source: Edit | None = None, **changes: Any
    ) -> Evidence: ...


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Made once: the copies of it are what the tests spoil."""
    return evidence_folders.evidence(tmp_path_factory.mktemp("clean"))


@pytest.fixture
def run(clean: Evidence, tmp_path: Path) -> MakeRun:
    def made(*, sink: Edit | None = None, source: Edit | None = None, **changes: Any) -> Evidence:
        shutil.copytree(clean.folder, tmp_path, dirs_exist_ok=True)
        spoiled = evidence_folders.spoiled(replace(clean, folder=str(tmp_path)), sink=sink, source=source)
        return replace(spoiled, **changes)

    return made


class Judged(dict[str, OracleResult]):
    """The results by oracle, each judged when it is first asked for."""

    def __init__(self, evidence: Evidence) -> None:
        super().__init__()
        self._evidence = evidence

    def __missing__(self, name: str) -> OracleResult:
        results = {result.oracle: result for result in oracles.judge(self._evidence, [name])}
        self[name] = results[name]
        return results[name]


def judged(evidence: Evidence) -> Judged:
    return Judged(evidence)


def judged_by_all(evidence: Evidence) -> dict[str, OracleResult]:
    return {result.oracle: result for result in oracles.judge(evidence, ORACLES)}


def codes(result: OracleResult) -> set[str]:
    return {finding.code for finding in result.findings}


def finding(result: OracleResult, code: str) -> Finding:
    return next(item for item in result.findings if item.code == code)


def changed(key: int, **values: Any) -> Edit:
    return lambda rows: [entry | values if entry["order_id"] == key else entry for entry in rows]


def without(key: int) -> Edit:
    return lambda rows: [entry for entry in rows if entry["order_id"] != key]


def added(key: int, **values: Any) -> Edit:
    """A copy of the order `key` with other values."""
    return lambda rows: [*rows, next(entry for entry in rows if entry["order_id"] == key) | values]


def later_by_a_millisecond(rows: Rows) -> Rows:
    return [
        entry | {"update_time": entry["update_time"].replace(microsecond=1000)}
        if entry["order_id"] == 9
        else entry
        for entry in rows
    ]


def amounts_swapped(rows: Rows) -> Rows:
    """Two orders of one partition, both inside the window, have each other's amount."""
    amount = {entry["order_id"]: entry["order_amount"] for entry in rows}
    swapped = {9: amount[11], 11: amount[9]}
    return [entry | {"order_amount": swapped.get(entry["order_id"], entry["order_amount"])} for entry in rows]


ONE_ROW = [{"order_id": 1, "order_amount": Decimal("1.00"), "dt": SECOND_DAY}]


def empty(rows: Rows) -> Rows:
    return []


def test_a_clean_run_is_valid_by_every_oracle(run: MakeRun) -> None:
    results = judged_by_all(run())

    assert dict.fromkeys(ORACLES, Verdict.VALID) == {name: result.verdict for name, result in results.items()}
    assert all(result.examined > 0 for result in results.values())
    assert all(check.held for result in results.values() for check in result.checks)
    assert [] == [code for result in results.values() for code in codes(result)]


def test_the_oracles_answer_in_the_order_of_the_registry(run: MakeRun) -> None:
    results = oracles.judge(run(), reversed(list(ORACLES)))

    assert list(ORACLES) == [result.oracle for result in results]


def test_completeness_is_asked_even_when_nobody_named_it(run: MakeRun) -> None:
    results = oracles.judge(run(), ["liveness"])

    assert ["completeness", "liveness"] == [result.oracle for result in results]


def test_a_run_that_was_meant_to_have_no_fault_is_not_asked_for_one(run: MakeRun) -> None:
    clean = run(expected_faults=0, faults=(), jobs=(living_job(restarts=0, failures=()),))

    results = judged_by_all(clean)

    assert "fault_effect" not in results
    assert {Verdict.VALID} == {result.verdict for result in results.values()}


@pytest.mark.parametrize(
    ("defect", "counted"),
    [
        (without(9), "1 keys missing, 0 extra"),
        (added(9, order_id=99), "0 keys missing, 1 extra"),
        (changed(9, order_amount=Decimal("9.01")), "1 with another row"),
        (changed(9, order_status=5), "1 with another row"),
        (later_by_a_millisecond, "1 with another row"),
        (changed(9, dt=SECOND_DAY), "1 with another row"),
        (changed(9, user_id=None), "1 with another row"),
        (amounts_swapped, "2 with another row"),
        (added(9, dt=SECOND_DAY), "1 with more than one row"),
        (added(9), "1 with more than one row"),
        (added(5 + 1, order_status=1), "1 with more than one row"),
        (empty, "14 keys missing"),
    ],
    ids=[
        "missing",
        "added",
        "amount",
        "status",
        "time",
        "moved to another day",
        "a value became NULL",
        "two amounts swapped, so that sums are equal",
        "in two partitions",
        "twice the same",
        "twice, the old row beside the new",
        "nothing at all",
    ],
)
def test_a_sink_that_is_not_the_source_is_invalid_and_the_rows_are_named(
    run: MakeRun, defect: Edit, counted: str
) -> None:
    result = judged(run(sink=defect))["primary_key"]

    assert Verdict.INVALID == result.verdict
    assert "rows-differ" in codes(result)
    differing = finding(result, "rows-differ")
    assert counted in differing.what
    assert differing.examples
    assert "fence 2, snapshot 42" == differing.where


def test_an_example_shows_key_expected_and_actual(run: MakeRun) -> None:
    defect = changed(9, order_amount=Decimal("9.01"))
    result = judged(run(sink=defect))["primary_key"]

    (example,) = finding(result, "rows-differ").examples
    assert example.startswith("stale: order_id 9; expected {")
    assert "9.00" in example.partition("; actual ")[0]
    assert "9.01" in example.partition("; actual ")[2]


def test_at_most_twenty_examples_are_shown_of_any_number_of_differences(run: MakeRun) -> None:
    def many(rows: Rows) -> Rows:
        return [*rows, *(rows[-1] | {"order_id": 1000 + number} for number in range(50))]

    result = judged(run(sink=many))["primary_key"]

    assert "50 extra" in finding(result, "rows-differ").what
    assert 20 == len(finding(result, "rows-differ").examples)


def test_sums_that_differ_are_told_by_partition(run: MakeRun) -> None:
    result = judged(run(sink=without(9)))["primary_key"]

    assert "totals-differ" in codes(result)
    assert f"fence 2, flink-sql, {FIRST_DAY}" in {check.name for check in result.checks if not check.held}
    assert f"fence 2, flink-sql, {SECOND_DAY}" in {check.name for check in result.checks if check.held}


def test_swapped_amounts_are_seen_although_every_sum_agrees(run: MakeRun) -> None:
    result = judged(run(sink=amounts_swapped))["primary_key"]

    assert {"rows-differ"} == codes(result)


def test_a_text_that_says_null_is_not_null() -> None:
    expected, actual = (
        pa.Table.from_pylist([entry | {"dt": dt} for entry in ONE_ROW], schema=ROW_SCHEMA)
        for dt in (None, "NULL")
    )

    found = difference(expected, actual, CONTRACT)

    assert 1 == found.stale


def test_a_marker_that_never_showed_is_invalid_although_all_rows_agree(run: MakeRun) -> None:
    lost = with_last_fence(run(), visible=False, visible_at_ms=0)

    result = judged(lost)["primary_key"]

    assert Verdict.INVALID == result.verdict
    assert {"marker-lost"} == codes(result)


def test_a_reader_that_failed_makes_unknown_of_what_else_agrees(run: MakeRun) -> None:
    clean = run()
    failed = Reading(reader="flink-sql", error="no slot")
    result = judged(with_last_fence(clean, sink=(clean.fences[-1].sink[0], failed)))["primary_key"]

    assert Verdict.UNKNOWN == result.verdict
    assert {"reader-failed"} == codes(result)
    assert "no slot" == finding(result, "reader-failed").actual


def test_files_that_are_gone_are_invalid_and_not_a_failed_reader(run: MakeRun) -> None:
    gone = Reading(reader="pypaimon-rust", error="a file is gone", files_missing=True)
    clean = run()
    result = judged(with_last_fence(clean, sink=(gone, replace(gone, reader="flink-sql")), sink_rows=""))[
        "primary_key"
    ]

    assert Verdict.INVALID == result.verdict
    assert {"sink-files-missing", "rows-unread"} == codes(result)


def test_readers_that_disagree_are_unknown_and_both_answers_are_shown(run: MakeRun) -> None:
    clean = run()
    native, flink = clean.fences[-1].sink
    other = replace(flink, totals=flink.totals[:-1])
    result = judged(with_last_fence(clean, sink=(native, other)))["primary_key"]

    assert Verdict.UNKNOWN == result.verdict
    assert "readers-disagree" in codes(result)
    said = finding(result, "readers-disagree").actual
    assert "pypaimon-rust: " in said
    assert "flink-sql: " in said


@pytest.mark.parametrize("asked", [0, 1])
def test_fewer_than_two_readers_are_unknown_although_the_rows_agree(run: MakeRun, asked: int) -> None:
    clean = run()
    result = judged(with_last_fence(clean, sink=clean.fences[-1].sink[:asked]))["primary_key"]

    assert Verdict.UNKNOWN == result.verdict
    assert {"reader-missing"} == codes(result)


def test_rows_that_were_not_read_are_unknown(run: MakeRun) -> None:
    result = judged(with_last_fence(run(), sink_rows=""))["primary_key"]

    assert Verdict.UNKNOWN == result.verdict
    assert {"rows-unread"} == codes(result)


def test_a_window_that_holds_no_row_is_unknown(run: MakeRun) -> None:
    clean = run()
    start = clean.fences[-1].window.start.replace(year=2001)
    window = TimeWindow(start=start, end=start)
    nothing = [
        replace(
            reading,
            totals=tuple(
                replace(total, window_keys=0, window_amount="0.00")
                for total in clean.fences[-1].source.totals
            ),
        )
        for reading in (clean.fences[-1].source, *clean.fences[-1].sink)
    ]
    result = judged(with_last_fence(clean, window=window, source=nothing[0], sink=tuple(nothing[1:])))[
        "primary_key"
    ]

    assert Verdict.UNKNOWN == result.verdict
    assert {"window-empty"} == codes(result)


@pytest.mark.parametrize(
    "defect",
    [without(9), added(9, order_id=99), changed(9, order_status=5), amounts_swapped, empty],
    ids=["missing", "added", "status, with equal sums", "swapped, with equal sums", "empty"],
)
def test_a_ledger_that_is_not_the_source_is_unknown_and_never_blamed_on_the_sink(
    run: MakeRun, defect: Edit
) -> None:
    results = judged(run(source=defect, sink=defect))

    assert Verdict.UNKNOWN == results["source_truth"].verdict
    assert Verdict.UNKNOWN == results["primary_key"].verdict
    assert {"ledger-is-not-source"} == codes(results["source_truth"]) | codes(results["primary_key"])


def test_a_source_whose_own_sums_are_not_its_rows_is_unknown(run: MakeRun) -> None:
    clean = run()
    source = replace(clean.fences[-1].source, totals=clean.fences[-1].source.totals[:-1])

    results = judged(with_last_fence(clean, source=source))

    assert Verdict.UNKNOWN == results["source_truth"].verdict
    assert Verdict.UNKNOWN == results["primary_key"].verdict


def test_a_source_that_was_not_read_is_unknown(run: MakeRun) -> None:
    failed = Reading(reader="mysql", error="gone away")
    results = judged(with_last_fence(run(), source=failed, source_rows=""))

    assert {"source-unread"} == codes(results["source_truth"])
    assert [Verdict.UNKNOWN] * 2 == [results["source_truth"].verdict, results["primary_key"].verdict]


@pytest.mark.parametrize(
    "changes", [{"unresolved": (41,)}, {"error": "transaction 41 is not known"}], ids=["unresolved", "error"]
)
def test_a_workload_that_does_not_know_what_it_committed_is_unknown(
    run: MakeRun, changes: dict[str, Any]
) -> None:
    broken = run(workload=replace(factories.WORKLOAD, **changes))

    result = judged(broken)["source_truth"]

    assert Verdict.UNKNOWN == result.verdict
    assert {"workload-broken"} == codes(result)
    assert "41" in finding(result, "workload-broken").actual


def test_a_fault_that_did_not_bite_is_unknown(run: MakeRun) -> None:
    result = judged(run(faults=(factories.proof(bit=False),)))["fault_effect"]

    assert Verdict.UNKNOWN == result.verdict
    assert {"fault-did-not-bite"} == codes(result)
    assert "taskmanager-1" == finding(result, "fault-did-not-bite").where


@pytest.mark.parametrize(
    "faults", [(), (replace(factories.proof(), checks=()),)], ids=["no proof", "a proof without checks"]
)
def test_a_fault_without_a_proof_is_unknown(run: MakeRun, faults: tuple[FaultProof, ...]) -> None:
    result = judged(run(faults=faults))["fault_effect"]

    assert Verdict.UNKNOWN == result.verdict
    assert {"fault-missing"} == codes(result)


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("FAILED", Verdict.INVALID),
        ("FINISHED", Verdict.INVALID),
        ("CANCELED", Verdict.INVALID),
        ("RESTARTING", Verdict.UNKNOWN),
        ("SUSPENDED", Verdict.UNKNOWN),
    ],
)
def test_a_job_that_does_not_run_at_the_end_is_never_valid(
    run: MakeRun, state: str, verdict: Verdict
) -> None:
    result = judged(run(jobs=(living_job(state=state),)))["liveness"]

    assert verdict == result.verdict
    assert {"job-not-running"} == codes(result)
    assert "TaskManager lost" == finding(result, "job-not-running").actual


def test_no_checkpoint_after_the_fault_is_invalid(run: MakeRun) -> None:
    stuck = run(jobs=(factories.job(),))

    result = judged(stuck)["liveness"]

    assert Verdict.INVALID == result.verdict
    assert {"no-progress"} == codes(result)
    assert "0 checkpoints, recovered in 12.5 s" == finding(result, "no-progress").actual


def test_failed_checkpoints_after_the_fault_are_no_progress(run: MakeRun) -> None:
    job = living_job()
    failing = replace(job, checkpoints=tuple(replace(item, status="FAILED") for item in job.checkpoints))

    result = judged(run(jobs=(failing,)))["liveness"]

    assert Verdict.INVALID == result.verdict


def test_a_job_that_did_not_recover_in_its_bound_is_invalid(run: MakeRun) -> None:
    clean = run()
    down = replace(
        clean,
        fences=clean.fences[:1],
        faults=(replace(factories.proof(), recovered_at_ms=0),),
        ended_early="waited 99 s for every task of the job to run again",
    )

    result = judged(down)["liveness"]

    assert Verdict.INVALID == result.verdict
    assert finding(result, "no-progress").actual.endswith("did not recover")


@pytest.mark.parametrize(
    "changes",
    [
        {"interrupted": "stopped by the user"},
        {},
        {"ended_early": "no TaskManager is idle", "faults": (replace(factories.proof(), injected_at_ms=0),)},
    ],
    ids=["somebody stopped the run", "the harness failed", "the fault was never injected"],
)
def test_a_recovery_that_nobody_awaited_is_unknown(run: MakeRun, changes: dict[str, Any]) -> None:
    clean = run()
    cut = replace(clean, fences=clean.fences[:1], jobs=(factories.job(),), **changes)

    result = judged(cut)["liveness"]

    assert Verdict.UNKNOWN == result.verdict


def test_restarts_without_a_recorded_failure_are_unknown(run: MakeRun) -> None:
    result = judged(run(jobs=(living_job(restarts=3),)))["liveness"]

    assert Verdict.UNKNOWN == result.verdict
    assert {"unexplained-restarts"} == codes(result)


def failures_at(*times_ms: int) -> tuple[JobFailure, ...]:
    return tuple(JobFailure(at_ms=at_ms, exception="RemoteTransport", taskmanager="") for at_ms in times_ms)


def test_several_restarts_before_the_first_checkpoint_after_a_fault_are_explained_by_it(run: MakeRun) -> None:
    injected = factories.proof().injected_at_ms
    job = living_job(restarts=3, failures=failures_at(injected + 256, injected + 1_422, injected + 7_537))

    assert Verdict.VALID == judged(run(jobs=(job,)))["liveness"].verdict


@pytest.mark.parametrize("before_or_after_ms", [-1, 10 * 60_000], ids=["before", "long after"])
def test_a_restart_outside_of_a_faults_time_is_unknown(run: MakeRun, before_or_after_ms: int) -> None:
    injected = factories.proof().injected_at_ms
    job = living_job(restarts=2, failures=failures_at(injected + 256, injected + before_or_after_ms))

    result = judged(run(jobs=(job,)))["liveness"]

    assert Verdict.UNKNOWN == result.verdict
    assert {"unexplained-restarts"} == codes(result)


def test_a_job_of_which_nothing_is_known_is_unknown(run: MakeRun) -> None:
    result = judged(run(jobs=()))["liveness"]

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"interrupted": "stopped by the user"}, "interrupted"),
        ({"ended_early": "job a1b2 is FAILED"}, "ended-early"),
        ({"expected_fences": 3}, "incomplete"),
        ({"expected_faults": 2}, "incomplete"),
        ({"expected_fences": 0, "fences": ()}, ""),
    ],
)
def test_a_run_that_did_not_go_its_whole_way_is_unknown(
    run: MakeRun, changes: dict[str, Any], code: str
) -> None:
    result = judged(run(**changes))["completeness"]

    assert Verdict.UNKNOWN == result.verdict
    assert ({code} if code else set()) == codes(result)


@pytest.mark.parametrize("name", ORACLES)
def test_nothing_examined_is_never_valid(run: MakeRun, name: str) -> None:
    nothing = run(fences=(), faults=(), jobs=(), expected_fences=0, expected_faults=1)

    result = judged(nothing)[name]

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"no parquet")])
def test_a_ledger_that_is_not_there_or_not_readable_is_unknown(
    run: MakeRun, damage: Callable[[Path], object]
) -> None:
    broken = run()
    damage(Path(broken.folder) / "ledger.parquet")

    results = judged(broken)

    assert Verdict.UNKNOWN == results["primary_key"].verdict
    assert {"oracle-crashed"} == codes(results["primary_key"]) | codes(results["source_truth"])


def test_a_run_whose_source_never_ran_is_judged_by_completeness_alone(run: MakeRun) -> None:
    never = run(workload=None, fences=(), faults=(), jobs=())
    (Path(never.folder) / "ledger.parquet").unlink()

    results = judged_by_all(never)

    assert {"completeness": Verdict.UNKNOWN} == {name: result.verdict for name, result in results.items()}


def test_an_oracle_that_crashes_is_unknown_and_says_with_what(run: MakeRun) -> None:
    short = run()
    last = short.fences[-1]
    beyond = with_last_fence(short, mark=replace(last.mark, operation=10_000))

    result = judged(beyond)["primary_key"]

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)
    assert finding(result, "oracle-crashed").actual.startswith("ValueError: the ledger holds operations")


@pytest.mark.parametrize("kind", ORACLES.values(), ids=list(ORACLES))
def test_every_oracle_says_what_must_hold_and_what_it_cannot_see(kind: OracleKind) -> None:
    assert kind.summary
    assert kind.blind_to


def test_every_finding_of_an_oracle_is_an_error_with_a_text(run: MakeRun) -> None:
    results = judged_by_all(run(sink=empty, faults=(), jobs=(living_job(restarts=9),)))

    found = [item for result in results.values() for item in result.findings]
    assert {Severity.ERROR} == {item.severity for item in found}
    assert all(item.what for item in found)
