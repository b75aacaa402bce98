"""The proof of snapshots in reports: nothing wrong is ever told or drawn as right."""

from __future__ import annotations

import io
from dataclasses import replace

import factories
import pytest
import report_sample
from rich.console import Console

from harness.model import RunResult, SnapshotPosition, TableContract
from harness.report import console, html, markdown
from harness.report.account import account
from harness.report.proof_plot import DRAWN_AT_MOST, Mark, marks, proof_plot
from harness.report.snapshot_proof import TableProof, gone_back, listed, proofs, sentence, why_none
from harness.report.vega import Spec

START_MS = factories.START_MS


def position(snapshot_id: int, operation: int, **changes: object) -> SnapshotPosition:
    """A snapshot of the orders that shows its operation after a second."""
    found = SnapshotPosition(
        table="orders",
        snapshot_id=snapshot_id,
        kind="APPEND",
        at_ms=START_MS + 3_000 * snapshot_id,
        operation=operation,
        lag_ms=1_000,
        inside_transaction=False,
        whole=False,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def result(
    *positions: SnapshotPosition, tables: tuple[TableContract, ...] = (factories.ORDERS,)
) -> RunResult:
    return factories.result(positions=positions, tables=tables, snapshots=())


def proof(*positions: SnapshotPosition) -> TableProof:
    (found,) = proofs(result(*positions))
    return found


def page_of(run: RunResult) -> str:
    """The page of a run, its plots left out: they take long."""
    return html.render(run, draw=lambda spec, *, title, description, css_class: "<svg></svg>")


def panels(run: RunResult) -> list[Spec]:
    found = proof_plot(run, width=900)["vconcat"]
    assert isinstance(found, list)
    return found


def test_snapshots_that_stand_in_order_are_told_as_such() -> None:
    found = proof(
        position(5, 40, whole=True), position(6, 60, inside_transaction=True), position(7, 90, lag_ms=3_000)
    )

    expected = (
        "3 snapshots, each equal to the source after one operation, in order; "
        "1 fell inside a source transaction; wait from commit to visible: 2.0 s median, 3.0 s at most"
    )
    assert expected == sentence(found)
    assert (3, 1, 1, 0) == (found.snapshots, found.whole, found.inside, found.bad)


def test_a_snapshot_that_holds_no_state_of_the_source_is_counted_and_named() -> None:
    found = proof(position(5, 40), position(6, -1), position(7, -1), position(8, 90), position(9, -1))

    assert (6, 7, 9) == found.nowhere
    assert sentence(found).startswith(
        "5 snapshots: 2 equal to the source after one operation, 3 to none (snapshots 6-7, 9); "
    )
    assert "each equal" not in sentence(found)
    assert "in order" not in sentence(found)


def test_a_snapshot_that_goes_back_is_not_in_order() -> None:
    positions = (position(5, 40), position(6, 90), position(7, 60), position(8, 80), position(9, 90))

    assert {7, 8} == gone_back(positions)
    assert "not in order: 2 went back (snapshots 7-8)" in sentence(proof(*positions))
    assert "each equal" not in sentence(proof(*positions))


def test_snapshots_that_nobody_saw_are_not_passed_over() -> None:
    late = replace(factories.snapshot(), snapshot_id=9)
    run = replace(result(position(5, 40), position(7, 60)), snapshots=(late,))
    (found,) = proofs(run)

    assert (6, 8, 9) == found.unseen
    assert "of 3 more it is not known what they held (snapshots 6, 8-9)" in sentence(found)
    assert not found.proven
    assert "3 not known" in page_of(run)
    assert "✓ none" not in page_of(run)
    assert "│ unknown  │" in shown(run)


def test_positions_are_taken_by_the_number_of_the_snapshot() -> None:
    assert proof(position(7, 90), position(5, 40), position(6, 60)).proven


def test_a_wait_counts_only_where_a_snapshot_brought_an_operation() -> None:
    idle = position(7, 60, lag_ms=90_000)
    wrong = position(8, -1, lag_ms=70_000)

    found = proof(position(5, 40, lag_ms=50_000), position(6, 60, lag_ms=2_000), idle, wrong)

    assert (2.0, 2.0) == (found.median_s, found.longest_s)


def test_one_snapshot_alone_tells_no_wait() -> None:
    expected = (
        "1 snapshot, each equal to the source after one operation, in order; "
        "0 fell inside a source transaction"
    )
    assert expected == sentence(proof(position(5, 40)))


def test_a_table_without_positions_is_no_proof_beside_one_that_has_some() -> None:
    run = result(position(5, 40), tables=factories.TABLES)
    nothing = proofs(run)[1]

    assert "no snapshot could be set against the ledger" == sentence(nothing)
    assert "none known" in page_of(run)
    assert "│ snapshots of        │ unknown  │   0 snapshots │" in shown(run)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([4], "snapshot 4"),
        ([4, 5], "snapshots 4-5"),
        ([9, 4, 5, 6], "snapshots 4-6, 9"),
        ([1, 3, 5, 7, 9, 11, 13, 15], "snapshots 1, 3, 5, 7, 9, 11 and 2 more"),
    ],
)
def test_numbers_of_snapshots_are_drawn_together(numbers: list[int], expected: str) -> None:
    assert expected == listed(numbers)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (factories.result(fences=()), "No fence was reached"),
        (factories.result(fences=(replace(factories.fence(), visible=False),)), "No fence became visible"),
        (
            factories.result(oracles=(replace(factories.oracle(examined=0), oracle="snapshot_prefix"),)),
            "Not known: nothing was examined.",
        ),
        (factories.result(), "no evidence of what each snapshot held"),
    ],
)
def test_why_nothing_is_known_is_said_in_every_report(run: RunResult, reason: str) -> None:
    assert reason in why_none(run)
    assert reason in page_of(run)
    assert reason in markdown.render(run)
    assert () == proofs(run)


def test_a_wrong_snapshot_is_drawn_where_the_right_one_before_it_stands() -> None:
    found = marks((position(5, -1), position(6, 60), position(7, -1), position(8, 50), position(9, 90)))

    expected = [("wrong", 60), ("replayed", 60), ("wrong", 60), ("wrong", 50), ("replayed", 90)]
    assert expected == [(mark.look, mark.operation) for mark in found]


def test_where_nothing_is_right_every_snapshot_is_drawn_as_wrong() -> None:
    assert [("wrong", 0)] * 2 == [(m.look, m.operation) for m in marks((position(5, -1), position(6, -1)))]


def test_how_a_snapshot_is_known_has_a_look_of_its_own() -> None:
    found = marks((position(5, 40, whole=True), position(6, 60), position(7, 60, kind="COMPACT", whole=True)))

    assert ["whole", "replayed", "compaction"] == [mark.look for mark in found]
    assert Mark(at_ms=START_MS + 15_000, operation=40, look="whole", snapshot_id=5) == found[0]


def test_wrong_snapshots_are_never_thinned_away_by_right_ones() -> None:
    many = [position(number, number) for number in range(1, 5 * DRAWN_AT_MOST)]
    spoiled = [replace(item, operation=-1) if item.snapshot_id in (501, 502) else item for item in many]

    (panel,) = panels(result(*spoiled))

    layers = [layer["data"]["values"] for layer in panel["layer"][-7:]]  # type: ignore[index]
    assert 2 in [len(values) for values in layers]
    assert ["snapshots 501-502"] == [value["text"] for values in layers[-2:] for value in values]
    assert max(len(values) for values in layers) <= DRAWN_AT_MOST + 1
    assert f"about {DRAWN_AT_MOST} snapshots" in page_of(result(*spoiled))


def test_the_plot_shares_its_time_axis_with_the_others() -> None:
    late = position(900, 40)

    spec = panels(result(late))[0]["layer"][-1]["encoding"]["x"]["scale"]["domain"]  # type: ignore[index]

    assert late.at_ms == spec[1]


def test_the_page_shows_the_proof_and_its_table() -> None:
    page = page_of(report_sample.run())

    assert "75 snapshots, each equal to the source after one operation, in order" in page
    assert "✓ none" in page


def test_the_page_of_a_run_with_wrong_snapshots_shows_and_names_them() -> None:
    page = html.render(report_sample.invalid())

    assert "14 to none (snapshots 40-41, 69-80)" in page
    assert "1 went back (snapshot 60)" in page
    assert "✕ 14" in page
    assert ">snapshots 69-80</text>" in page


def test_the_summary_has_a_line_for_each_table() -> None:
    lines = markdown.render(report_sample.invalid()).splitlines()

    head = lines.index("**The proof, snapshot by snapshot**")
    assert lines[head + 2].startswith("- orders: 75 snapshots: ")
    assert lines[head + 3].startswith("- behavior-log: 65 snapshots: 51 equal")
    assert "" == lines[head + 4]


def shown(run: RunResult) -> str:
    output = io.StringIO()
    Console(file=output, width=80).print(console.verdict_table(run))
    return output.getvalue()


def test_the_console_has_a_row_for_each_table() -> None:
    right, wrong = shown(report_sample.run()), shown(report_sample.invalid())

    assert right.count("snapshots of ") == len(report_sample.RATES)
    assert "in order │  75 snapshots" in right
    assert "14 wrong │  65 snapshots" in wrong
    assert "snapshots of" not in shown(factories.result())


def test_what_voids_a_verdict_no_longer_names_states_that_every_snapshot_rules_out() -> None:
    every = account(report_sample.run()).voided_by[-1]
    none = account(factories.result()).voided_by[-1]

    assert "a snapshot before the first fence" in every
    assert "a wrong state that healed before a fence" in none
