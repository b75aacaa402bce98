"""Scenario files: what they give, and what each mistake in one is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.errors import ScenarioError, UsageError
from harness.scenario import Scenario, built_in, load, with_overrides

FAULTS = ("noop", "kill-taskmanager", "stop-with-savepoint", "cut-storage", "pause-taskmanager")
ORACLES = ("primary-key", "append-only")
JOBS = ("orders", "behavior-log")

GOOD = """\
name: mine
description: a scenario
profile: fast
seed: 7
workload:
  rate: 1000
  initial_rows: 50
faults:
  - fault: kill-taskmanager
    with:
      signal: 9
      bound: 1.5
      hard: true
      node: taskmanager-1
oracles: all
jobs: [orders, behavior-log]
"""


def read(reference: str) -> Scenario:
    return load(reference, faults=FAULTS, oracles=ORACLES, jobs=JOBS)


def written(folder: Path, content: str | bytes) -> str:
    path = folder / "mine.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def refusal(reference: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(reference)
    assert caught.value.todo
    return caught.value.what


def test_a_scenario_file_gives_its_values_and_the_defaults_of_those_left_away(tmp_path: Path) -> None:
    scenario = read(written(tmp_path, GOOD))

    parameters = {"signal": 9, "bound": 1.5, "hard": True, "node": "taskmanager-1"}
    expected = {
        "name": "mine",
        "description": "a scenario",
        "jobs": ("orders", "behavior-log"),
        "profile": "fast",
        "seed": 7,
        "workload": {"rate": 1000, "initial_rows": 50},
        "startup": "initial",
        "parallelism": 2,
        "chunk_size": 8096,
        "steady_checkpoints": 2,
        "cycles": 3,
        "flink": {},
        "cluster": {},
        "catalog": {},
        "accepts": (),
        "faults": ({"fault": "kill-taskmanager", "during": "steady", "with": parameters},),
        "oracles": ORACLES,
    }
    assert expected == scenario.model_dump(by_alias=True)
    assert isinstance(scenario.faults[0].parameters["hard"], bool)


def test_oracles_may_be_chosen_by_name(tmp_path: Path) -> None:
    scenario = read(written(tmp_path, GOOD.replace("oracles: all", "oracles: [append-only]")))

    expected = ("append-only",)
    assert expected == scenario.oracles


@pytest.mark.parametrize("name", sorted(built_in()))
def test_each_built_in_scenario_loads_by_its_name(name: str) -> None:
    scenario = read(name)

    assert name == scenario.name


def test_the_built_in_kill_is_one_kill_at_a_set_rate_judged_by_all_oracles() -> None:
    scenario = read("kill-taskmanager")

    expected = (["kill-taskmanager"], ORACLES, 20260706, 500, 2000)
    faults = [step.fault for step in scenario.faults]
    workload = scenario.workload
    assert expected == (faults, scenario.oracles, scenario.seed, workload.rate, workload.initial_rows)


def test_the_built_in_clean_scenario_has_no_fault() -> None:
    assert not read("clean").faults


def test_the_known_loss_and_its_counterpart_differ_only_in_where_the_job_begins_to_read() -> None:
    loss, counterpart = (read(name).model_dump() for name in ("known-bulk-update-loss", "bulk-update"))

    different = {field for field in loss if loss[field] != counterpart[field]}
    assert {"name", "description", "startup"} == different
    assert ("latest-offset", "initial") == (loss["startup"], counterpart["startup"])
    assert ["bulk-update"] == [step["during"] for step in loss["faults"]]


def test_a_job_without_a_table_to_rewrite_gets_no_bulk_update(tmp_path: Path) -> None:
    jobs = GOOD.replace("jobs: [orders, behavior-log]", "jobs: [behavior-log]")
    path = written(tmp_path, jobs.replace("    with:", "    during: bulk-update\n    with:"))

    assert f"{path}:8: faults: during: bulk-update needs orders among the jobs" in refusal(path)


def test_with_the_latest_offset_there_is_no_initial_load_to_strike(tmp_path: Path) -> None:
    latest = GOOD.replace("jobs: [orders, behavior-log]", "jobs: [orders]\nstartup: latest-offset")
    path = written(tmp_path, latest.replace("    with:", "    during: initial-load\n    with:"))

    assert f"{path}:8: faults: during: initial-load needs startup: initial" in refusal(path)


def test_a_built_in_name_wins_over_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clean").mkdir()

    expected = built_in()["clean"].stem
    assert expected == read("clean").name


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[orders, behavior-log]", "[orders, orders]", [(16, "jobs: job 'orders' is named twice")]),
        ("jobs: [orders, behavior-log]", "jobs: []", [(16, "jobs: ")]),
        (
            "faults:\n",
            "faults:\n  - fault: noop\n  - {fault: noop, during: initial-load}\n",
            [(8, "faults: expected those during: initial-load before all others")],
        ),
        (
            "oracles: all",
            "oracles: all\nstartup: latest-offset",
            [(16, "startup: latest-offset is for jobs: [orders] alone: rows that were committed before")],
        ),
        (
            "oracles: all",
            "oracles: all\nstartup: lastest-offset",
            [(16, "startup: expected one of initial, latest-offset, got 'lastest-offset', did you mean")],
        ),
        (
            "rows: 50\nfaults:\n",
            "rows: 0\nfaults:\n  - {fault: noop, during: bulk-update}\n",
            [
                (
                    8,
                    "faults: during: bulk-update needs orders among the jobs, and initial_rows of it",
                )
            ],
        ),
        ("seed: 7", "sede: 7", [(4, "sede: unknown field, did you mean 'seed'; fields here are: name, ")]),
        ("seed: 7", "seed: 7.5", [(4, "seed: expected a whole number, got 7.5")]),
        ("seed: 7", "seed: true", [(4, "seed: expected a whole number, got True")]),
        ("seed: 7", "seed: -1", [(4, "seed: expected at least 0, got -1")]),
        ("seed: 7", "seed:", [(4, "seed: expected a whole number, got nothing (null)")]),
        ("rate: 1000", "rate: 2001", [(6, "workload.rate: expected at most 2000, got 2001")]),
        ("rate: 1000", "rate: 0", [(6, "workload.rate: expected at least 1, got 0")]),
        ("rate: 1000", "rate: fast", [(6, "workload.rate: expected a whole number, got 'fast'")]),
        (
            "rate: 1000",
            "rate: null",
            [(6, "workload.rate: expected a rate from 1 to 2000, since faults run")],
        ),
        (
            "rate: 1000",
            "rte: 1000",
            [(5, "workload.rate: this field is missing"), (6, "workload.rte: unknown ")],
        ),
        ("rows: 50", "rows: -1", [(7, "workload.initial_rows: expected at least 0, got -1")]),
        (
            "profile: fast",
            "profile: gide",
            [(3, "profile: expected one of fast, guide, got 'gide', did you")],
        ),
        (
            "name: mine",
            "name: My Own",
            [(1, "name: expected a name of lower-case letters and digits with hy")],
        ),
        ("name: mine", "name: 7", [(1, "name: expected a text, got 7")]),
        (
            "jobs: [orders, behavior-log]",
            "jobs: [order]",
            [(16, "jobs: unknown job 'order', did you mean 'orders'; there are: orde")],
        ),
        (
            "fault: kill-taskmanager",
            "fault: kill-taskmanger",
            [
                (
                    9,
                    "faults[0].fault: unknown fault 'kill-taskmanger', did you mean 'kill-taskmanager'; ",
                )
            ],
        ),
        (
            "    with:",
            "    wiht:",
            [(10, "faults[0].wiht: unknown field, did you mean 'with'; fields here are: f")],
        ),
        ("signal: 9", "signal: [9]", [(11, "faults[0].with.signal: expected a text, a number, true or fal")]),
        (
            "signal: 9",
            "signal: .nan",
            [(11, "faults[0].with.signal: expected a text, a number, true or fal")],
        ),
        (
            "fault: kill-taskmanager",
            "fault: kill",
            [(9, "faults[0].fault: unknown fault 'kill', did you mean")],
        ),
        ("oracles: all", "oracles: al", [(15, "oracles: expected a list of oracles, or the word all")]),
        ("oracles: all", "oracles: []", [(15, "oracles: expected at least one oracle: with none, nothing")]),
        (
            "oracles: all",
            "oracles: [primary-kye]",
            [
                (
                    15,
                    "oracles: unknown oracle 'primary-kye', did you mean 'primary-key'; there are: ",
                )
            ],
        ),
        (
            "oracles: all",
            "oracles: [append-only, append-only]",
            [(15, "oracles: oracle 'append-only' is named")],
        ),
        ("oracles: all", "oracles: all\ncycles: 0", [(16, "cycles: expected at least 1, got 0")]),
        ("oracles: all", "oracles: all\nseed: 8", [(16, "seed: this field is given twice")]),
        ("  rate: 1000", "  rate: 1000\n  rate: 1", [(7, "rate: this field is given twice")]),
        ("oracles: all", "oracles: all\n3: x", [(16, "expected the name of a field, got '3'")]),
        ("seed: 7", "seed: [7", [(5, "this is not YAML: ")]),
        ("seed: 7", "seed: 2026-13-45", [(1, "this is not YAML that can be read: ")]),
    ],
)
def test_a_mistake_is_told_with_file_line_field_and_what_was_expected(
    tmp_path: Path, old: str, new: str, expected: list[tuple[int, str]]
) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new))

    message = refusal(path)

    for line, complaint in expected:
        assert f"{path}:{line}: {complaint}" in message, message


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "name: mine\nprofile: fast\nseed: x\n")

    lines = refusal(path).splitlines()

    expected = [
        f"{path} has 5 problems:",
        f"{path}:1: description: this field is missing",
        f"{path}:3: seed: expected a whole number, got 'x'",
        f"{path}:1: workload: this field is missing",
        f"{path}:1: faults: this field is missing",
        f"{path}:1: oracles: this field is missing",
    ]
    assert expected == lines


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", ":1: the file is empty; expected a mapping"),
        ("# only a comment\n", ":1: the file is empty; expected a mapping"),
        ("- a\n- b\n", ":1: expected a mapping of fields to values, got a list"),
        ("\nkill-taskmanager\n", ":2: expected a mapping of fields to values, got the single value 'kill-t"),
        ("name: a\n---\nname: b\n", ":2: this is not YAML: but found another document"),
        (b"name: a\ndescription: \xff\n", ":2: this is not UTF-8 text"),
        ("name: a\x07\n", ":1: this is not YAML that can be read"),
        ("a: " + "[" * 3000, ":1: this is nested too deeply"),
        (b"#" * 1_000_001, ": the file is larger than 1000000 bytes"),
        ("a: &a [*a]\n", ":1: a: unknown field"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused_with_its_name_and_line(
    tmp_path: Path, content: str | bytes, complaint: str
) -> None:
    path = written(tmp_path, content)

    message = refusal(path)

    assert f"{path}{complaint}" in message


def test_a_file_that_is_not_there_is_refused_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "gone.yaml"

    expected = f"{path}: there is no such file"
    assert expected == refusal(str(path))


@pytest.mark.parametrize("reference", ["x" * 300 + ".yaml", "folder/a\0b.yaml"])
def test_a_path_that_cannot_be_is_refused(reference: str) -> None:
    assert "the file can't be read" in refusal(reference)


def test_a_directory_is_refused_by_its_path(tmp_path: Path) -> None:
    expected = f"{tmp_path}: this is a directory; expected a scenario file"
    assert expected == refusal(str(tmp_path))


def test_an_unknown_name_gets_the_nearest_built_in_one() -> None:
    with pytest.raises(ScenarioError, match=r"no scenario 'cleen'.*did you mean 'clean'") as caught:
        read("cleen")

    expected = f"built in are: {', '.join(sorted(built_in()))}"
    assert expected == caught.value.todo


def test_an_empty_reference_is_refused() -> None:
    with pytest.raises(ScenarioError, match="no scenario ''"):
        read("")


def test_a_name_too_long_for_a_file_is_an_unknown_scenario() -> None:
    with pytest.raises(ScenarioError, match="no scenario 'xxx"):
        read("x" * 300)


def test_all_oracles_of_an_empty_registry_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)

    with pytest.raises(ScenarioError, match="at least one oracle"):
        load(path, faults=FAULTS, oracles=(), jobs=JOBS)


def test_overrides_change_what_they_name_and_nothing_else() -> None:
    scenario = read("kill-taskmanager")

    changed = with_overrides(scenario, profile="guide", seed=1, rate=20)

    expected = scenario.model_dump() | {
        "profile": "guide",
        "seed": 1,
        "workload": {"rate": 20, "initial_rows": 2000},
    }
    assert expected == changed.model_dump()


def test_no_override_leaves_the_scenario_as_it_is() -> None:
    scenario = read("kill-taskmanager")

    assert scenario == with_overrides(scenario)


def test_an_override_that_cannot_be_is_refused_with_what_was_expected() -> None:
    with pytest.raises(UsageError) as caught:
        with_overrides(read("clean"), profile="fsat", rate=5000)

    expected = (
        "scenario clean can't be overridden like this: "
        "profile: expected one of fast, guide, got 'fsat', did you mean 'fast'; "
        "workload.rate: expected at most 2000, got 5000"
    )
    assert expected == caught.value.what


def test_a_scenario_survives_being_written_as_yaml_and_read_again(tmp_path: Path) -> None:
    scenario = read("kill-taskmanager")

    content = yaml.safe_dump(scenario.model_dump(by_alias=True, mode="json"), sort_keys=False)

    assert scenario == read(written(tmp_path, content))


def test_known_limits_are_accepted_by_name_and_by_nothing_else(tmp_path: Path) -> None:
    accepting = read(written(tmp_path, GOOD + "accepts: [torn-late-commits]\n"))

    assert ("torn-late-commits",) == accepting.accepts
    with pytest.raises(UsageError, match="accepts"):
        read(written(tmp_path, GOOD + "accepts: [anything]\n"))
