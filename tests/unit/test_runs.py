"""Finding a run that is over, and what its result stands for."""

from __future__ import annotations

from pathlib import Path

import factories
import pytest

from harness import runs
from harness.errors import UsageError
from harness.model import Event, Verdict


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """A folder of reports with two runs and `latest`."""
    for name in ("20260706-1-acceptance-aaaa", "20260707-1-acceptance-bbbb"):
        (tmp_path / "reports" / name).mkdir(parents=True)
        (tmp_path / "reports" / name / "result.json").write_text("{}")
    (tmp_path / "reports" / "latest").symlink_to("20260707-1-acceptance-bbbb")
    return tmp_path / "reports"


def test_a_run_is_found_by_its_name_by_latest_and_by_its_path(reports: Path, tmp_path: Path) -> None:
    first, second = (reports / name for name in runs.run_names(reports))

    assert first == runs.folder_of(first.name, reports)
    assert second == runs.folder_of("latest", reports)
    assert first == runs.folder_of(str(first), tmp_path / "elsewhere")
    assert first == runs.folder_of(f"{first}/", reports)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("20260706-1-acceptance-aaab", "did you mean '20260706-1-acceptance-aaaa'"),
        ("gone", "no run 'gone'"),
        ("", "no run ''"),
        (".", "no run '.'"),
    ],
)
def test_a_run_that_is_not_there_is_refused_and_the_nearest_is_named(
    reports: Path, reference: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reports)
    with pytest.raises(UsageError) as caught:
        runs.folder_of(reference, reports)

    assert said in caught.value.what
    assert "20260707-1-acceptance-bbbb" in caught.value.todo


def test_where_nothing_has_run_the_refusal_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        runs.folder_of("latest", tmp_path)

    assert "nothing has run there yet" == caught.value.todo


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"verdict": Verdict.INVALID, "exit_code": 1}, 1),
        ({"verdict": Verdict.UNKNOWN, "exit_code": 2}, 2),
        ({"verdict": Verdict.UNKNOWN, "exit_code": 3}, 3),
        ({"failure": "no engine"}, 3),
        ({"oracles": ()}, 2),
        ({"oracles": (factories.oracle(Verdict.INVALID),)}, 1),
        ({"faults": (factories.proof(bit=False),)}, 2),
        ({"exit_code": 2}, 2),
        ({"exit_code": 77}, 3),
    ],
)
def test_a_result_stands_for_0_only_when_all_of_it_is_valid(changes: dict[str, object], code: int) -> None:
    assert code == runs.exit_code(factories.result(**changes))


def test_a_run_was_interrupted_when_its_events_say_so() -> None:
    stopped = factories.result(events=(Event(at_ms=1, kind="interrupted", text="stopped by the user"),))

    assert runs.was_interrupted(stopped)
    assert not runs.was_interrupted(factories.result())
