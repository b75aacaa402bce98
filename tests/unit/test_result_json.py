"""result.json and evidence.json: what goes in comes out, and nothing else is taken."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import factories
import pytest

from harness import evidence
from harness.errors import UsageError
from harness.report import result_json

SCHEMA = Path(__file__).parents[2] / "docs" / "result.schema.json"


def test_a_result_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    result = factories.result(failure="stack: ☃ did not come up", workload=None)

    result_json.save(result, tmp_path)

    assert result == result_json.load(tmp_path)


def test_text_that_is_not_unicode_does_not_keep_a_result_from_being_saved(tmp_path: Path) -> None:
    result_json.save(factories.result(failure="bad \udcff byte"), tmp_path)

    expected = "bad ? byte"
    assert expected == result_json.load(tmp_path).failure


def test_saving_leaves_one_file_and_replaces_an_older_one(tmp_path: Path) -> None:
    result_json.save(factories.result(seed=1), tmp_path)
    path = result_json.save(factories.result(seed=2), tmp_path)

    assert [path] == list(tmp_path.iterdir())
    assert factories.result(seed=2) == result_json.load(tmp_path)


def test_verdicts_are_written_as_words(tmp_path: Path) -> None:
    path = result_json.save(factories.result(), tmp_path)

    expected = "VALID"
    assert expected == json.loads(path.read_text(encoding="utf-8"))["verdict"]


@pytest.mark.parametrize("version", [0, 2, 4, "3", None, True])
def test_an_unknown_schema_version_is_refused(tmp_path: Path, version: object) -> None:
    path = result_json.save(factories.result(), tmp_path)
    content = json.loads(path.read_text(encoding="utf-8")) | {"schema_version": version}
    path.write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(UsageError, match=r"result\.json: expected .* schema_version 3, got "):
        result_json.load(tmp_path)


def test_a_result_of_another_version_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="schema_version 4, expected 3"):
        result_json.save(factories.result(schema_version=4), tmp_path)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "as JSON"),
        ("[]", "schema_version 3, got None"),
        ('{"schema_version": 3}', "not the result of a run"),
        ("\ufeff{", "as JSON"),
    ],
)
def test_a_file_that_is_no_result_is_refused_with_its_path(
    tmp_path: Path, content: str, complaint: str
) -> None:
    (tmp_path / "result.json").write_text(content, encoding="utf-8")

    with pytest.raises(UsageError, match=complaint) as caught:
        result_json.load(tmp_path)

    assert str(tmp_path / "result.json") in caught.value.what


def test_an_unknown_verdict_is_refused(tmp_path: Path) -> None:
    path = result_json.save(factories.result(), tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace('"VALID"', '"FINE"'), encoding="utf-8")

    with pytest.raises(UsageError, match="verdict"):
        result_json.load(tmp_path)


def test_a_folder_without_a_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        result_json.load(tmp_path)


def test_the_committed_schema_is_current() -> None:
    committed = SCHEMA.read_text(encoding="utf-8")

    assert result_json.schema() == committed, "python -m harness.report.result_json > docs/result.schema.json"


def test_the_schema_asks_for_every_field_of_a_result() -> None:
    schema = json.loads(result_json.schema())

    assert set(schema["properties"]) == set(schema["required"])


def test_evidence_comes_back_as_it_was_saved_but_for_its_folder(tmp_path: Path) -> None:
    evidence.save(factories.evidence(), tmp_path)

    loaded = evidence.load(tmp_path)

    assert replace(factories.evidence(), folder=str(tmp_path)) == loaded


def test_evidence_of_an_unknown_version_is_refused(tmp_path: Path) -> None:
    path = evidence.save(factories.evidence(), tmp_path)
    text = path.read_text(encoding="utf-8").replace('"schema_version": 3', '"schema_version": 9')
    path.write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=r"evidence\.json: expected evidence with schema_version 3, got 9"):
        evidence.load(tmp_path)
