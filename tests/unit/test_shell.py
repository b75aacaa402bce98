"""Programs: what they print comes back, and one that fails, is missing or too slow is told."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness import shell
from harness.errors import HarnessError
from harness.waiting import wait_until


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_what_a_program_prints_comes_back_apart() -> None:
    done = shell.run(python("import sys; print('out'); print('err', file=sys.stderr)"), timeout_s=30)

    assert (0, "out\n", "err\n") == (done.status, done.stdout, done.stderr)


def test_a_program_that_fails_is_told_with_its_status_and_its_last_words() -> None:
    code = "import sys; [print(n, file=sys.stderr) for n in range(40)]; sys.exit(7)"
    with pytest.raises(HarnessError) as caught:
        shell.run(python(code), timeout_s=30)

    assert "ended with status 7:" in caught.value.what
    assert [str(n) for n in range(25, 40)] == caught.value.what.splitlines()[-15:]


def test_a_program_that_fails_silently_on_stderr_is_told_with_its_output() -> None:
    with pytest.raises(HarnessError, match="only here"):
        shell.run(python("import sys; print('only here'); sys.exit(1)"), timeout_s=30)


def test_a_status_may_be_asked_for_instead() -> None:
    assert 7 == shell.run(python("import sys; sys.exit(7)"), timeout_s=30, check=False).status


def test_a_program_that_is_too_slow_is_stopped_and_told_with_its_bound() -> None:
    with pytest.raises(HarnessError, match="did not end within 1 s"):
        shell.run(python("import time; time.sleep(60)"), timeout_s=0.6)


def test_a_program_that_is_missing_is_told_by_its_name() -> None:
    with pytest.raises(HarnessError) as caught:
        shell.run(["no-such-program", "--version"], timeout_s=30)

    assert ("program not found: no-such-program", "install no-such-program") == (
        caught.value.what,
        caught.value.todo,
    )


def test_a_programs_environment_is_added_to_ours(tmp_path: Path) -> None:
    code = "import os; print(os.environ['ADDED'], 'PATH' in os.environ, os.getcwd())"
    done = shell.run(python(code), timeout_s=30, env={"ADDED": "yes"}, cwd=tmp_path)

    assert f"yes True {tmp_path.resolve()}" == done.stdout.strip()


def test_bytes_that_are_no_text_do_not_break_it() -> None:
    done = shell.run(python("import sys; sys.stdout.buffer.write(b'a\\xffb')"), timeout_s=30)

    assert "a\ufffdb" == done.stdout


def test_a_program_has_nothing_to_read() -> None:
    assert "" == shell.run(python("print(input() if False else '', end='')"), timeout_s=30).stdout
    with pytest.raises(HarnessError, match="EOFError"):
        shell.run(python("input()"), timeout_s=30)


def test_a_daemon_has_a_session_of_its_own_and_its_words_go_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "daemon.log"
    process = shell.start_daemon(python("import os; print(os.getsid(0))"), log=log)
    said = wait_until("the daemon's words", log.read_text, timeout_s=30, every_s=0.01)
    os.waitpid(process, 0)

    assert process == int(said)
