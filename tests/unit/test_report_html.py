"""report.html: one page with everything a verdict rests on, whatever texts a run brings."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import factories
import pytest
import report_sample

from harness.model import HARNESS_FAILED, Check, Event, Finding, RunResult, Severity, Verdict
from harness.report import html
from harness.report.vega import Spec, drawing

NASTY = "<script>alert(1)</script><img src=x onerror=alert(1)> \x1b[31m \x00 \udcff"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._tag = ""
        self.feed(page)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._tag = tag

    def handle_data(self, data: str) -> None:
        if self._tag != "style":
            self.text += f"{data} "


def draw_nothing(spec: Spec, *, title: str, description: str, css_class: str) -> str:
    raise ValueError("no <pen> here")


@pytest.fixture(scope="module")
def valid() -> Elements:
    return Elements(html.render(report_sample.run()))


@pytest.fixture(scope="module")
def spoiled() -> Elements:
    return Elements(html.render(report_sample.invalid()))


def test_the_verdict_stands_first_in_words_with_what_it_holds_for_and_what_voids_it(valid: Elements) -> None:
    run = report_sample.run()

    assert valid.text.index("✓ VALID") < valid.text.index("What it holds for")
    assert "Exactly-once held on dwd.dwd_order_detail and dwd.dwd_behavior_log through" in valid.text
    for part in (
        "Flink 1.20.3",
        "Paimon 1.3.1",
        run.config_hash,
        "Seed 20260706",
        "3 of 3: kill-taskmanager on taskmanager-1; stop-with-savepoint on the jobs; cut-storage on",
        "98,304 sink rows (reconciliation)",
        "180 checkpoints completed, 4 fences",
        "What voids it",
        run.reproduce,
    ):
        assert part in valid.text


@pytest.mark.parametrize(
    ("result", "word"),
    [
        (report_sample.invalid(), "✕ INVALID"),
        (factories.result(oracles=()), "? UNKNOWN"),
        (factories.result(oracles=(factories.oracle(examined=0),)), "? UNKNOWN"),
        (factories.result(faults=(factories.proof(bit=False),)), "? UNKNOWN"),
        (factories.result(failure="no engine", failure_todo="start it"), "! HARNESS FAILED"),
        (factories.result(exit_code=HARNESS_FAILED), "! HARNESS FAILED"),
    ],
)
def test_what_is_not_valid_is_never_shown_as_held(result: RunResult, word: str) -> None:
    page = Elements(html.render(result, draw=draw_nothing))

    assert f"{word} " in page.text[:200]
    assert "Exactly-once held" not in page.text
    assert "What voids it" not in page.text
    assert "Why " in page.text


def test_every_check_and_finding_is_there_with_expected_and_actual(spoiled: Elements) -> None:
    result = report_sample.invalid()

    for oracle in result.oracles:
        for check in oracle.checks:
            for part in (check.name, check.expected, check.actual):
                assert " ".join(part.split()) in spoiled.text
        for finding in oracle.findings:
            for part in (finding.code, finding.what, finding.where, finding.todo, *finding.examples):
                assert " ".join(part.split()) in spoiled.text
    assert "✕ not held" in spoiled.text
    assert "✕ did not bite" in spoiled.text
    assert "✕ not visible" in spoiled.text
    assert "no slot" in spoiled.text


def test_texts_of_a_run_never_become_elements(spoiled: Elements) -> None:
    page = Elements(
        html.render(
            replace(
                report_sample.invalid(),
                run=NASTY,
                scenario=NASTY,
                profile=NASTY,
                started_at=NASTY,
                config_hash=NASTY,
                failure=NASTY,
                failure_todo=NASTY,
                profile_differences=(NASTY,),
                unapplied_options=(NASTY,),
            )
        )
    )

    for elements in (page.elements, spoiled.elements):
        assert {"script", "img", "i<"}.isdisjoint(tag for tag, _ in elements)
        assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
    assert "\x1b" not in page.text
    assert "\x00" not in page.text


def test_nothing_on_the_page_points_outside_of_the_run_s_folder(spoiled: Elements) -> None:
    targets = [
        value
        for _, attributes in spoiled.elements
        for name, value in attributes.items()
        if name in ("href", "src", "action", "xlink:href")
    ]

    assert targets
    assert [] == [value for value in targets if not re.match(r"#|\./|data:,$", value or "")]
    assert "./logs/a%20b%231.log" in targets
    assert "./javascript%3Aalert%281%29" in targets


def test_the_page_forbids_scripts_and_loading(valid: Elements) -> None:
    policies = [attributes["content"] for tag, attributes in valid.elements if attributes.get("http-equiv")]

    assert ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"] == policies


def test_each_plot_has_two_widths_a_title_a_description_and_no_colour_of_its_own() -> None:
    page = html.render(report_sample.run())

    plots = re.findall(r'<svg [^>]*class="(wide|narrow)" role="img".*?</svg>', page, re.DOTALL)
    assert ["wide", "narrow"] * 3 == plots
    for plot in re.findall(r'<svg [^>]*role="img".*?</svg>', page, re.DOTALL):
        assert "<title>" in plot
        assert "<desc>" in plot
        assert not re.search(r'(fill|stroke)="(?!none|var\(--|transparent)', plot)
        assert " id=" not in plot


def test_faults_fences_and_checkpoints_are_in_the_timeline(valid: Elements) -> None:
    for part in (
        "kill-taskmanager, 6.4 s",
        "stop-with-savepoint, 5.2 s",
        "cut-storage, 34 s",
        "orders: change records",
        "behavior-log: checkpoint duration",
        "orders: wait until visible",
        "fence 4",
    ):
        assert part in valid.text


def test_a_fault_that_did_not_recover_says_so_in_the_timeline() -> None:
    stuck = replace(factories.proof(), healed_at_ms=0, recovered_at_ms=0)

    page = Elements(html.render(factories.result(faults=(stuck, replace(stuck, injected_at_ms=0)))))

    assert "kill-taskmanager: did not recover" in page.text
    assert "kill-taskmanager: never injected" in page.text


def test_time_travel_says_why_only_fences_are_compared(valid: Elements) -> None:
    assert "up to the barrier of its checkpoint, not up to the moment of its own commit" in valid.text


def test_a_snapshot_of_another_time_is_marked(spoiled: Elements) -> None:
    assert "none ✕ another" in spoiled.text


def test_a_run_that_broke_off_before_anything_happened_has_a_page() -> None:
    bare = factories.result(
        failure="no engine",
        budget=None,
        tables=(),
        oracles=(),
        faults=(),
        fences=(),
        travels=(),
        jobs=(),
        snapshots=(),
        progress=(),
        workload=None,
        phases=(),
        events=(),
        logs=(),
        components=(),
        settings=(),
        seconds=0.0,
    )

    page = Elements(html.render(bare))

    assert "! HARNESS FAILED" in page.text
    assert "No fence was reached." in page.text


def test_what_cannot_be_drawn_is_an_error() -> None:
    with pytest.raises(ValueError, match="SVG conversion failed"):
        drawing({"data": {"values": []}, "mark": "no such mark"}, title="x", description="x", css_class="x")


def test_a_plot_that_cannot_be_drawn_does_not_cost_the_report() -> None:
    page = Elements(html.render(factories.result(), draw=draw_nothing))

    assert "The plot could not be drawn: no <pen> here" in page.text
    assert "✓ VALID" in page.text


def test_a_run_with_too_much_to_say_stays_under_two_megabytes() -> None:
    checks = tuple(Check(name=f"{n}", expected="x" * 900, actual="y" * 900, held=n > 0) for n in range(900))
    finding = Finding(code="X", severity=Severity.ERROR, what="w" * 9000, examples=("e" * 9000,) * 20)
    oracle = replace(factories.oracle(Verdict.INVALID), checks=checks[::-1], findings=(finding,) * 30)
    event = Event(at_ms=factories.START_MS, kind="k", text="t" * 9000)
    result = replace(report_sample.run(), oracles=(oracle,) * 4, events=(event,) * 20_000)

    page = html.render(result, draw=draw_nothing)

    assert len(page.encode()) <= html.AT_MOST_BYTES
    assert "✕ not held" in page
    assert "more are in" in page


def test_the_same_result_gives_the_same_page() -> None:
    assert html.render(factories.result()) == html.render(factories.result())


def test_the_page_lies_in_the_folder_of_the_run(tmp_path: Path) -> None:
    path = html.save(factories.result(failure="bad \udcff byte"), tmp_path)

    assert tmp_path / "report.html" == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
