"""The only place that starts a program on this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A program that ended: its exit status and what it printed."""

    status: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = True,
) -> Finished:
    """Run a program to its end and return what it printed.

    `env` adds to the environment. With `check`, a status other than 0 raises HarnessError with the
    last lines of what the program said; a program that is missing or too slow always raises.
    """
    shown = " ".join(argv)
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            env={**os.environ, **env} if env else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError:
        raise HarnessError(f"program not found: {argv[0]}", todo=f"install {argv[0]}") from None
    except subprocess.TimeoutExpired:
        raise HarnessError(f"`{shown}` did not end within {timeout_s:.0f} s") from None
    if check and done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise HarnessError(f"`{shown}` ended with status {done.returncode}:\n{said}")
    return Finished(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def start_daemon(argv: Sequence[str], *, log: Path) -> int:
    """Start a program that outlives the harness, in a session of its own; return its process id."""
    # Not Popen: its object complains, when it is dropped, that the program still runs.
    with log.open("ab") as out:
        return os.posix_spawnp(
            argv[0],
            list(argv),
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, out.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, out.fileno(), 2),
            ],
            setsid=True,
        )
