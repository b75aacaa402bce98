"""The profiles: guide is the guide's, and fast differs in nothing but what it lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from harness import resources
from harness.errors import HarnessError, UsageError
from harness.profiles import Profile, load_profile, profile_names

guide_sets = (
    ("execution.runtime-mode", "streaming"),
    ("execution.checkpointing.mode", "EXACTLY_ONCE"),
    ("execution.checkpointing.interval", "120s"),
    ("execution.checkpointing.timeout", "600s"),
    ("execution.checkpointing.max-concurrent-checkpoints", "1"),
    ("execution.checkpointing.min-pause", "60s"),
    ("execution.checkpointing.tolerable-failed-checkpoints", "3"),
    ("state.backend", "rocksdb"),
    ("state.backend.incremental", "true"),
    ("state.checkpoints.dir", "s3://flink/checkpoints/r1"),
    ("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION"),
    ("restart-strategy", "fixed-delay"),
    ("restart-strategy.fixed-delay.attempts", "3"),
    ("restart-strategy.fixed-delay.delay", "30s"),
)
guide_orders = (
    ("bucket", "16"),
    ("bucket-key", "order_id"),
    ("file.format", "orc"),
    ("merge-engine", "deduplicate"),
    ("changelog-producer", "input"),
    ("commit.force-create-snapshot", "true"),
    ("snapshot.num-retained.min", "20"),
    ("snapshot.num-retained.max", "200"),
    ("snapshot.time-retained", "48h"),
    ("commit.max-retries", "20"),
)
guide_log = (
    ("bucket", "-1"),
    ("file.format", "parquet"),
    ("changelog-producer", "none"),
    ("snapshot.num-retained.min", "10"),
    ("snapshot.num-retained.max", "100"),
    ("snapshot.time-retained", "24h"),
)
guide_cluster = (("heartbeat.interval", "10000"), ("heartbeat.timeout", "50000"))


def settings(profile: Profile) -> list[tuple[str, str]]:
    """Every setting; a table's with the table's name before it, as the differences are told."""
    of_tables = [(f"{name}: {key}", value) for name, table in profile.tables for key, value in table]
    return [*profile.flink, *profile.cluster, *of_tables]


def changed() -> dict[str, tuple[str, str]]:
    guide, fast = settings(load_profile("guide", run="r1")), settings(load_profile("fast", run="r1"))
    return {
        key: (value, other) for (key, value), (_, other) in zip(guide, fast, strict=True) if value != other
    }


def kind(key: str, value: str) -> str:
    if re.fullmatch(r"\d+(ms|s|h)", value) or key.startswith("heartbeat."):
        return "time"
    if key == "restart-strategy.fixed-delay.attempts":
        return "restart attempts"
    if ": snapshot.num-retained." in key:
        return "retention"
    return "something else"


def write_profiles(folder: Path, name: str, content: str) -> Path:
    (folder / "profiles").mkdir()
    guide = resources.folder("jobs") / "profiles" / "guide.yaml"
    (folder / "profiles" / "guide.yaml").write_text(guide.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "profiles" / f"{name}.yaml").write_text(content, encoding="utf-8")
    return folder


def test_guide_sets_what_the_guide_sets_in_its_order() -> None:
    profile = load_profile("guide", run="r1")

    assert guide_sets == profile.flink
    assert dict(guide_orders) == profile.table("orders")
    assert dict(guide_log) == profile.table("behavior-log")
    assert guide_cluster == profile.cluster


def test_guide_differs_from_itself_in_nothing() -> None:
    profile = load_profile("guide", run="r1")

    assert not profile.differences


def test_fast_has_the_keys_of_guide_in_the_same_order() -> None:
    guide, fast = load_profile("guide", run="r1"), load_profile("fast", run="r1")

    assert [key for key, _ in guide.flink] == [key for key, _ in fast.flink]
    assert [key for key, _ in guide.cluster] == [key for key, _ in fast.cluster]
    for name, options in guide.tables:
        assert [key for key, _ in options] == list(fast.table(name))


def test_fast_differs_from_guide_in_nothing_but_the_overrides_it_lists() -> None:
    path = resources.folder("jobs") / "profiles" / "fast.yaml"
    file = yaml.safe_load(path.read_text(encoding="utf-8"))
    listed = {key for section in ("flink", "cluster") for key in file[section]}
    listed |= {f"{table}: {key}" for table, options in file["tables"].items() for key in options}

    assert listed == set(changed())


def test_fast_prints_one_line_with_a_reason_for_each_override() -> None:
    lines = load_profile("fast", run="r1").differences

    expected = [f"{key}: {guide} → {fast} (" for key, (guide, fast) in changed().items()]
    assert expected == [line[: line.index("(") + 1] for line in lines]
    assert all(re.search(r"\(.{10,}\)$", line) for line in lines)


def test_fast_overrides_only_times_restart_attempts_and_retention() -> None:
    kinds = {kind(key, value) for key, values in changed().items() for value in values}

    assert {"time", "restart attempts", "retention"} == kinds


def test_fast_keeps_the_guides_ratio_of_timeout_to_interval() -> None:
    fast = dict(load_profile("fast", run="r1").flink)

    interval, timeout = ("execution.checkpointing.interval", "execution.checkpointing.timeout")
    assert {interval: "3s", timeout: "15s"} == {key: fast[key] for key in (interval, timeout)}


def test_every_option_that_is_not_applied_has_its_section_and_reason() -> None:
    lines = load_profile("fast", run="r1").unapplied

    assert all(re.fullmatch(r"\S+ \(§3\.[234]\): .{10,}", line) for line in lines)
    assert {
        "state.backend.rocksdb.memory.write-buffer-ratio",
        "state.backend.rocksdb.checkpoint.transfer.thread.num",
        "execution.checkpointing.alignment-timeout",
        "execution.checkpointing.unaligned",
        "commit.retry-interval",
        "write-mode",
        "commit.ignore-non-existing-files",
        "oss.connection.timeout",
        "oss.socket.timeout",
    } == {line.split(" ")[0] for line in lines}


def test_an_adapted_value_names_the_guides_value_and_the_one_in_force() -> None:
    (line,) = load_profile("guide", run="r1").adapted

    assert line.startswith(
        "state.checkpoints.dir: oss://your-bucket/flink/checkpoints/xxx_job → s3://flink/checkpoints/r1 ("
    )


def test_an_unknown_profile_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="unknown profile 'fsat'") as caught:
        load_profile("fsat", run="r1")

    expected = "did you mean 'fast'? profiles are: fast, guide"
    assert expected == caught.value.todo


def test_a_table_without_options_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="profile guide has no options for table 'log'") as caught:
        load_profile("guide", run="r1").table("log")

    assert "it has: orders, behavior-log" == caught.value.todo


def test_the_profiles_are_fast_and_guide() -> None:
    expected = ("fast", "guide")

    assert expected == profile_names()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("flink: {new.key: {value: a, why: b}}", "new.key.*the guide has no such key"),
        ("tables: {orders: {bucket: {value: '16', why: b}}}", "bucket.*that is the guide's own value"),
        ("tables: {orders: {bucket: {value: '8'}}}", "why"),
        ("tables: {orders: {bucket: {value: '8', why: ''}}}", "why"),
        ("tables: {log: {bucket: {value: '8', why: b}}}", "tables: log: expected a table of the guide"),
        ("tabel: {}", "tabel"),
        ("flink: [", "can't be used"),
    ],
)
def test_a_profile_that_does_more_than_override_with_a_reason_is_refused(
    tmp_path: Path, content: str, complaint: str
) -> None:
    jobs = write_profiles(tmp_path, "own", content)

    with pytest.raises(HarnessError, match=complaint):
        load_profile("own", run="r1", jobs=jobs)


def test_folders_come_from_the_wheel_when_it_carries_them_else_from_the_checkout(tmp_path: Path) -> None:
    package = tmp_path / "harness"
    (tmp_path / "jobs").mkdir()
    (package / "_data" / "compose").mkdir(parents=True)
    (tmp_path / "compose").mkdir()

    assert tmp_path / "jobs" == resources.folder("jobs", package=package)
    assert package / "_data" / "compose" == resources.folder("compose", package=package)


def test_a_folder_that_is_nowhere_is_an_error_that_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"no folder 'jobs'.*_data"):
        resources.folder("jobs", package=tmp_path / "harness")


def test_a_scenarios_own_settings_are_differences_too() -> None:
    attempts = "restart-strategy.fixed-delay.attempts"
    fast = load_profile("fast", run="r1")
    changed = fast.with_settings(
        flink={attempts: "1"}, cluster={"new": "2"}, catalog={"s3": "x"}, why="the scenario's"
    )

    assert ("1", "2") == (dict(changed.flink)[attempts], dict(changed.cluster)["new"])
    assert len(fast.flink) == len(changed.flink)
    added = [f"{attempts}: 20 → 1", "new: not set → 2", "s3: not set → x"]
    added = [f"{line} (the scenario's)" for line in added]
    assert [*fast.differences, *added] == list(changed.differences)
