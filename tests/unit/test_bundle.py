"""A bundle: whole, small enough, without secrets, the same each time, and it says what is not in it."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from harness import bundle
from harness.errors import UsageError

RUN = "20260706-101500-acceptance-ab12"
MB = 1_000_000
SECRETS = ("s3cr3t-of-storage", "hunter2hunter2", "cdc-pass-99", "AKIAIOSFODNN7EXAMPLE")


def noise(size: int, seed: int) -> bytes:
    """Bytes that nothing makes smaller."""
    block = b"".join(hashlib.sha256(f"{seed} {n}".encode()).digest() for n in range(size // 32 + 1))
    return block[:size]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder with a file of each kind, and secrets in them."""
    folder = tmp_path / "reports" / RUN
    (folder / "evidence").mkdir(parents=True)
    (folder / "logs").mkdir()
    result = {
        "run": RUN,
        "settings": [{"scope": "cluster", "key": "s3.secret-key", "value": SECRETS[0]}],
        "reproduce": "./run harness accept",
    }
    (folder / "result.json").write_text(json.dumps(result, indent=2))
    (folder / "report.html").write_text(f"<td>s3.secret-key</td><td>{SECRETS[0]}</td>")
    (folder / "summary.md").write_text("VALID")
    (folder / "junit.xml").write_text("<testsuites/>")
    (folder / "events.jsonl").write_text(json.dumps({"text": f"mysql://root:{SECRETS[1]}@source"}) + "\n")
    (folder / "evidence" / "evidence.json").write_text(json.dumps({"schema_version": 1}))
    for name, size in (("ledger-orders", 300_000), ("fence-1-sink", 100_000), ("fence-1-source", 50_000)):
        (folder / "evidence" / f"{name}.parquet").write_bytes(noise(size, size))
    (folder / "logs" / "source.log").write_text(f"MYSQL_ROOT_PASSWORD={SECRETS[1]}\nroot uses {SECRETS[1]}\n")
    lines = [f"line {n} {noise(24, n).hex()}\n" for n in range(8_000)]
    lines[100] = f"'password' = '{SECRETS[2]}'\n"
    lines[5_000] = f"key {SECRETS[3]}\n"
    (folder / "logs" / "taskmanager-1.log").write_text("".join(lines))
    return folder


def packed(file: Path) -> dict[str, bytes]:
    """What is in a bundle, by the name below the run's folder."""
    with tarfile.open(file) as tar:
        found = {}
        for member in tar.getmembers():
            content = tar.extractfile(member)
            assert content is not None
            found[member.name.removeprefix(f"{RUN}/")] = content.read()
    return found


def manifest(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(packed(file)[bundle.MANIFEST])
    return content


def test_a_small_run_is_in_its_bundle_whole(run: Path, tmp_path: Path) -> None:
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=20 * MB)

    files = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    content = packed(done.file)
    assert files | {bundle.MANIFEST} == set(content)
    assert ((), ()) == (done.left_out, done.missing)
    assert done.size_bytes == done.file.stat().st_size
    for parquet in (name for name in files if name.endswith(".parquet")):
        assert (run / parquet).read_bytes() == content[parquet]


def test_no_planted_secret_is_left_in_any_file(run: Path, tmp_path: Path) -> None:
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=20 * MB)

    content = packed(done.file)
    assert [] == [(name, s) for name, text in content.items() for s in SECRETS if s.encode() in text]
    assert "***" == json.loads(content["result.json"])["settings"][0]["value"]
    assert b"<td>s3.secret-key</td><td>***</td>" == content["report.html"]
    assert b"MYSQL_ROOT_PASSWORD=***\nroot uses ***\n" == content["logs/source.log"]
    assert "mysql://root:***@source" == json.loads(content["events.jsonl"])["text"]
    assert done.redacted >= 7


def test_the_secrets_stay_in_the_run_itself(run: Path, tmp_path: Path) -> None:
    before = (run / "result.json").read_bytes()
    bundle.write(run, tmp_path / "b.tar.gz", max_bytes=20 * MB)

    assert before == (run / "result.json").read_bytes()


def test_the_same_run_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    first = bundle.write(run, tmp_path / "1.tar.gz", max_bytes=MB)
    (run / "summary.md").touch()
    second = bundle.write(run, tmp_path / "2.tar.gz", max_bytes=MB)

    assert first.file.read_bytes() == second.file.read_bytes()


def test_the_manifest_has_size_and_sum_of_each_file(run: Path, tmp_path: Path) -> None:
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=20 * MB)

    content = packed(done.file)
    listed = {item["name"]: item for item in manifest(done.file)["files"]}
    assert set(content) - {bundle.MANIFEST} == set(listed)
    assert all(len(content[name]) == item["bytes"] for name, item in listed.items())
    assert all(hashlib.sha256(content[name]).hexdigest() == item["sha256"] for name, item in listed.items())
    ledger = listed["evidence/ledger-orders.parquet"]
    assert ledger["sha256"] == ledger["original_sha256"]


def test_the_sum_of_a_file_that_held_a_secret_is_not_told(run: Path, tmp_path: Path) -> None:
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=20 * MB)

    listed = {item["name"]: item for item in manifest(done.file)["files"]}
    assert ("", 2) == (listed["logs/source.log"]["original_sha256"], listed["logs/source.log"]["redacted"])


def test_a_bundle_that_is_too_large_shortens_logs_first_and_says_so_in_them(
    run: Path, tmp_path: Path
) -> None:
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=600_000)

    log = packed(done.file)["logs/taskmanager-1.log"]
    entry = next(item for item in manifest(done.file)["files"] if item["name"] == "logs/taskmanager-1.log")
    assert done.size_bytes <= 600_000
    assert () == done.left_out
    assert log.startswith(b"line 0 ")
    assert log.endswith((run / "logs" / "taskmanager-1.log").read_bytes()[-60:])
    assert b"bytes left out here to make the bundle smaller" in log
    assert entry["shortened"]
    assert (run / "logs" / "taskmanager-1.log").stat().st_size == entry["original_bytes"]


def test_then_the_largest_rows_stay_out_and_are_listed_with_size_and_sum(run: Path, tmp_path: Path) -> None:
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=200_000)

    name = "evidence/ledger-orders.parquet"
    assert done.size_bytes <= 200_000
    assert [name] == [item.name for item in done.left_out]
    assert name not in packed(done.file)
    (entry,) = manifest(done.file)["left_out"]
    content = (run / name).read_bytes()
    assert (name, len(content), hashlib.sha256(content).hexdigest()) == (
        entry["name"],
        entry["bytes"],
        entry["sha256"],
    )
    assert "200,000 bytes" in entry["why"]


def test_the_verdict_and_the_evidence_json_are_never_left_out(run: Path, tmp_path: Path) -> None:
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=40_000)

    assert {"result.json", "report.html", "evidence/evidence.json"} <= set(packed(done.file))
    assert 3 == len(done.left_out)


def test_what_cannot_be_made_that_small_is_refused_and_leaves_no_file(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected at most 1,000"):
        bundle.write(run, tmp_path / "b.tar.gz", max_bytes=1_000)

    assert not (tmp_path / "b.tar.gz").exists()


def test_a_file_of_an_unknown_kind_stays_out(run: Path, tmp_path: Path) -> None:
    (run / "heap.hprof").write_bytes(b"password=x")
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=20 * MB)

    assert [("heap.hprof", "not known to be free of secrets")] == [(i.name, i.why) for i in done.left_out]


def test_a_link_out_of_the_run_is_not_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "private.txt").write_text("mine")
    (run / "logs" / "link.log").symlink_to(tmp_path / "private.txt")
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=20 * MB)

    assert "logs/link.log" not in packed(done.file)


def test_a_run_that_was_killed_can_be_bundled_and_what_is_missing_is_named(run: Path, tmp_path: Path) -> None:
    (run / "junit.xml").unlink()
    (run / "result.json").write_text('{"settings": [{"key": "x", "password": "abc-1234-5678')
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=20 * MB)

    assert ("junit.xml",) == done.missing
    assert ["junit.xml"] == manifest(done.file)["missing"]
    assert b"abc-1234-5678" not in packed(done.file)["result.json"]


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing of a run is there"):
        bundle.write(tmp_path, tmp_path / "b.tar.gz", max_bytes=MB)


def test_every_entry_is_owned_by_nobody_and_has_no_time_of_its_own(run: Path, tmp_path: Path) -> None:
    done = bundle.write(run, tmp_path / "b.tar.gz", max_bytes=20 * MB)

    with tarfile.open(done.file) as tar:
        entries = tar.getmembers()
    assert {(0, 0, 0, 0o644)} == {(entry.mtime, entry.uid, entry.gid, entry.mode) for entry in entries}
    assert sorted(entry.name for entry in entries) == [entry.name for entry in entries]
