"""The preflight of the source: which servers CDC can read, and what is said of the others."""

from __future__ import annotations

import pytest

from harness.source.mysql import violations_of

GOOD = {
    "version": "8.0.40",
    "version_comment": "MySQL Community Server - GPL",
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "gtid_mode": "ON",
    "character_set_server": "utf8mb4",
    "explicit_defaults_for_timestamp": "ON",
    "sql_mode": "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
    "time_zone": "+00:00",
    "system_time_zone": "UTC",
}


@pytest.mark.parametrize("version", ["5.6.24-log", "5.7.44", "8.0.40"])
def test_a_listed_version_with_all_settings_is_accepted(version: str) -> None:
    assert violations_of(GOOD | {"version": version}) == []


@pytest.mark.parametrize("version", ["8.4.0", "9.1.0"])
def test_a_version_without_show_master_status_is_refused_with_the_reason(version: str) -> None:
    (violation,) = violations_of(GOOD | {"version": version})

    assert violation.startswith(f"version: expected MySQL 5.6, 5.7 or 8.0, is {version} ")
    assert "SHOW MASTER STATUS" in violation


@pytest.mark.parametrize("version", ["5.5.62", "8.2.0", ""])
def test_a_version_that_the_connector_does_not_list_is_refused(version: str) -> None:
    assert len(violations_of(GOOD | {"version": version})) == 1


@pytest.mark.parametrize(
    ("name", "value", "violation"),
    [
        ("log_bin", "OFF", "log_bin: expected ON, is OFF"),
        ("binlog_format", "MIXED", "binlog_format: expected ROW, is MIXED"),
        ("binlog_row_image", "MINIMAL", "binlog_row_image: expected FULL, is MINIMAL"),
        ("gtid_mode", "OFF_PERMISSIVE", "gtid_mode: expected ON, is OFF_PERMISSIVE"),
        ("character_set_server", "utf8", "character_set_server: expected utf8mb4, is utf8"),
        (
            "explicit_defaults_for_timestamp",
            "OFF",
            "explicit_defaults_for_timestamp: expected ON, is OFF",
        ),
        ("sql_mode", "", "sql_mode: expected STRICT_TRANS_TABLES in it, is (empty)"),
        ("time_zone", "+08:00", "time_zone: expected UTC or +00:00, is +08:00"),
    ],
)
def test_each_setting_is_read_back(name: str, value: str, violation: str) -> None:
    assert violations_of(GOOD | {name: value}) == [violation]


def test_all_violations_are_named_at_once() -> None:
    assert len(violations_of({"version": "8.4.0"})) == 9


def test_the_system_time_zone_counts_when_the_server_follows_it() -> None:
    assert violations_of(GOOD | {"time_zone": "SYSTEM"}) == []
    assert violations_of(GOOD | {"time_zone": "SYSTEM", "system_time_zone": "CST"}) == [
        "time_zone: expected UTC or +00:00, is CST"
    ]


def test_mariadb_is_judged_by_the_settings_that_it_has() -> None:
    mariadb = {name: value for name, value in GOOD.items() if name != "gtid_mode"}
    mariadb["version"] = "10.11.6-MariaDB-0+deb12u1-log"

    assert violations_of(mariadb) == []
    assert violations_of(mariadb | {"binlog_format": "MIXED"}) == ["binlog_format: expected ROW, is MIXED"]
