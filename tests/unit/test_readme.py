"""The README's generated tables are current, and no file names a package registry's host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness import faults, oracles, shell
from harness.report.tables import Rows, fault_rows, markdown, oracle_rows

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TABLES: Mapping[str, Rows] = {
    "oracles": oracle_rows(oracles.ORACLES),
    "faults": fault_rows(faults.FAULTS),
}
# In two parts each, so that this file does not name them either.
HOSTS = tuple(
    "".join(parts)
    for parts in (
        ("pypi", ".org"),
        ("python", "hosted"),
        ("repo1", ".maven"),
        ("repo", ".maven"),
        ("registry", ".npmjs"),
        ("proxy", ".golang"),
        ("deb", ".debian"),
        ("docker", ".io/"),  # without the slash it is the name of a Debian package
    )
)


def generated(name: str) -> str:
    """What stands in the README between the marks of a table."""
    return (
        README.read_text(encoding="utf-8").split(f"<!-- generated: {name} -->\n")[1].split("<!-- end -->")[0]
    )


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_in_the_readme_are_what_the_registries_say(name: str) -> None:
    expected = markdown(TABLES[name]) + "\n"

    assert expected == generated(name), f"put in the output of: ./run harness list {name}"


def test_a_bar_in_a_cell_does_not_end_the_cell() -> None:
    assert "| a \\| b |\n| --- |" == markdown([("a | b",)])


def test_no_file_names_the_host_of_a_package_registry() -> None:
    # The checkout may belong to somebody else, as in a container.
    git = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = shell.run(git, cwd=ROOT, timeout_s=30).stdout.split("\0")
    files = [ROOT / name for name in listed if name and (ROOT / name).is_file()]

    assert len(files) > 50
    assert [] == [
        f"{file.relative_to(ROOT)}: {host}"
        for file in files
        for host in HOSTS
        if host.encode() in file.read_bytes()
    ]
