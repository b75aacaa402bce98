"""Acceptance tests on the real pipeline in pytest: run a scenario, look at its result, fail by its verdict.

    def test_my_job_survives(accept):
        assert_valid(accept("kill-taskmanager", seed=7))

    @pytest.mark.exactly_once(scenario="kill-taskmanager", seed=7)
    def test_it_restarted(accepted):
        assert accepted.result.jobs[0].restarts >= 1

An INVALID run is a failure. An UNKNOWN one, and a failure of the harness, is an error: in the summary, in
the exit code and in JUnit, even under xfail; never a skip, and nothing is retried. Everything but pytest
is imported when a scenario is run, so the plugin costs nothing where it isn't used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast, get_args

import pytest

if TYPE_CHECKING:
    from harness.acceptance import Accepted
    from harness.model import RunResult
    from harness.pipeline import ComposePipeline, StackOptions
    from harness.ports import Listener
    from harness.scenario import Scenario

    BeforeReconcile = Callable[[ComposePipeline, int], None]

MARKER = "exactly_once"
_WIDTH = 120
_CURRENT = pytest.StashKey[pytest.Item]()
_OPTIONS = (
    ("images", "where images come from: auto, pull or build", "auto"),
    ("registry", "prefix of the images to pull", ""),
    ("source-image", "mysql or mariadb", "mysql"),
    ("storage-image", "minio or seaweedfs", "minio"),
    ("reports", "folder for the runs' reports", "reports"),
)
_SWITCHES = (
    ("keep", "leave stacks up at the end of a run"),
    ("install", "install and start a Docker Engine where none answers, without asking"),
)


class RunInvalid(AssertionError):
    """Exactly-once did not hold. pytest shows it as a failure."""


class RunUnknown(Exception):
    """The run proves nothing. pytest shows it as an error."""


class RunBroke(Exception):
    """The harness itself failed, or was asked for something that can't be. pytest shows it as an error."""


@dataclass(frozen=True)
class _Plan:
    """What the marker takes; by position too, as marks do."""

    scenario: str | Path
    profile: str | None = None
    seed: int | None = None
    rate: int | None = None


class Runner(Protocol):
    """Runs a scenario: `harness.acceptance.run_scenario`, or a fake of it."""

    def __call__(
        self,
        scenario: Scenario,
        *,
        options: StackOptions,
        reports: Path,
        listener: Listener,
        keep: bool,
        reproduce: str,
        before_reconcile: BeforeReconcile | None,
    ) -> Accepted: ...


class Accept(Protocol):
    """Runs a scenario on a stack of its own and returns whatever came out of it.

    `scenario` is the name of a built-in one, the path of a file, or a file's text. `before_reconcile` is
    called at every fence, with its number, before anything is read: tests damage there. Raises RunBroke
    when it could not begin, and KeyboardInterrupt when somebody stopped it.
    """

    def __call__(
        self,
        scenario: str | Path,
        *,
        profile: str | None = None,
        seed: int | None = None,
        rate: int | None = None,
        before_reconcile: BeforeReconcile | None = None,
    ) -> Accepted: ...


def assert_valid(run: Accepted | RunResult) -> None:
    """Return when the run is VALID. Raises RunInvalid, RunUnknown or RunBroke, which name every finding."""
    __tracebackhide__ = True
    from harness import runs
    from harness.model import HARNESS_FAILED, RunResult, Verdict
    from harness.report.wording import failed_checks, finding_lines, run_verdict

    result, folder = (run, "") if isinstance(run, RunResult) else (run.result, f"{run.folder}/")
    code, verdict = runs.exit_code(result), run_verdict(result)
    if code == 0:
        return
    word = "HARNESS FAILED" if code == HARNESS_FAILED else verdict.value
    lines = [f"{word}: {result.scenario}, seed {result.seed}, run {result.run}"]
    lines += [line for line in (result.failure, result.failure_todo) if line]
    for oracle in result.oracles:
        found = [line for finding in oracle.findings for line in finding_lines(finding)]
        if oracle.verdict is not Verdict.VALID or found:
            lines += [f"{oracle.oracle}: {oracle.verdict.value}", *(f"  {line}" for line in found)]
    for proof in result.faults:
        if not proof.bit:
            failed = failed_checks(proof.checks) or ("no check was made",)
            lines += [f"{proof.fault} did not bite:", *(f"  {line}" for line in failed)]
    lines += [line for line in (f"report: {folder}" if folder else "", f"again: {result.reproduce}") if line]
    message = "\n".join(lines)
    if code == HARNESS_FAILED:
        raise RunBroke(message)
    if verdict is Verdict.INVALID:
        raise RunInvalid(message)
    raise RunUnknown(message)


@pytest.fixture(scope="session")
def harness_runner() -> Runner:
    """What runs a scenario. Override it to test tests without a stack."""
    from harness.acceptance import run_scenario

    return run_scenario


@pytest.fixture(scope="session")
def harness_options(pytestconfig: pytest.Config) -> StackOptions:
    """How stacks are made: from the command line, else from the ini file. Override it for more."""
    from harness.pipeline import StackOptions
    from harness.stacks.images import Mode, Source, Storage

    return StackOptions(
        images=cast(Mode, _word(pytestconfig, "images", get_args(Mode))),
        registry=_text(pytestconfig, "registry"),
        source=cast(Source, _word(pytestconfig, "source-image", get_args(Source))),
        storage=cast(Storage, _word(pytestconfig, "storage-image", get_args(Storage))),
        may_install=_switch(pytestconfig, "install"),
    )


@pytest.fixture(scope="session")
def harness_reports(pytestconfig: pytest.Config) -> Path:
    """Where run folders go: named on the command line or in an ini file, below the folder of either."""
    given = pytestconfig.getoption("--harness-reports")
    below = pytestconfig.invocation_params.dir if given else pytestconfig.rootpath
    return below / _text(pytestconfig, "reports")


@pytest.fixture(scope="session")
def accept(
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
    harness_runner: Runner,
    harness_options: StackOptions,
    harness_reports: Path,
) -> Accept:
    """Run a scenario and return its result and its folder; for the session, so that wider fixtures may."""

    def accepted(
        scenario: str | Path,
        *,
        profile: str | None = None,
        seed: int | None = None,
        rate: int | None = None,
        before_reconcile: BeforeReconcile | None = None,
    ) -> Accepted:
        from rich.console import Console

        from harness import faults, oracles, runs
        from harness.errors import HarnessError
        from harness.report.progress import LineListener
        from harness.scenario import load, with_overrides

        reference = str(scenario)
        if "\n" in reference:
            file = tmp_path_factory.mktemp("scenario") / "scenario.yaml"
            file.write_text(reference, encoding="utf-8")
            reference = str(file)
        item = pytestconfig.stash.get(_CURRENT, None)
        try:
            planned = with_overrides(
                load(reference, faults=faults.FAULTS, oracles=oracles.ORACLES),
                profile=profile,
                seed=seed,
                rate=rate,
            )
            # pytest captures what is printed, and shows it with a failure, or at once with -s.
            with LineListener(Console(file=sys.stdout, width=_WIDTH)) as listener:
                done = harness_runner(
                    planned,
                    options=harness_options,
                    reports=harness_reports,
                    listener=listener,
                    keep=_switch(pytestconfig, "keep"),
                    reproduce=f"pytest {item.nodeid}" if item else "pytest",
                    before_reconcile=before_reconcile,
                )
        except HarnessError as error:
            raise RunBroke(str(error)) from error
        except AssertionError:
            raise  # the test's own, from before_reconcile
        except Exception as error:
            raise RunBroke(f"the harness crashed: {type(error).__name__}: {error}") from error
        if item is not None:
            item.user_properties.append(("harness-run", str(done.folder)))
            item.user_properties.append(("harness-verdict", done.result.verdict.value))
        if runs.was_interrupted(done.result):
            raise KeyboardInterrupt  # the run has cleaned up; pytest must not go on to the next one
        return done

    return accepted


@pytest.fixture
def accepted(request: pytest.FixtureRequest, accept: Accept) -> Accepted:
    """The run that the test's `exactly_once` marker asks for; judged before the test's own body."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None:
        raise RunBroke(f"the fixture `accepted` needs @pytest.mark.{MARKER}(scenario=...); see also `accept`")
    plan = _plan(marker)
    return accept(plan.scenario, profile=plan.profile, seed=plan.seed, rate=plan.rate)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("paimon-harness", "acceptance tests of Flink + Paimon pipelines")
    for name, text, default in _OPTIONS:
        group.addoption(f"--harness-{name}", metavar="TEXT", help=f"{text} (default: {default or 'none'})")
        parser.addini(_ini(name), f"{text}; see --harness-{name}", default=default)
    for name, text in _SWITCHES:
        group.addoption(f"--harness-{name}", action="store_true", help=text)
        parser.addini(_ini(name), f"{text}; see --harness-{name}", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(scenario, profile=None, seed=None, rate=None): run a scenario before the test; "
        "INVALID fails it, UNKNOWN is an error; the fixture `accepted` holds the run",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each marked test the fixture that runs its scenario, whether it asks for it or not."""
    for item in items:
        names = getattr(item, "fixturenames", None)
        if item.get_closest_marker(MARKER) and isinstance(names, list) and "accepted" not in names:
            item.fixturenames = [*names, "accepted"]  # type: ignore[attr-defined]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.config.stash[_CURRENT] = item
    try:
        return (yield)
    finally:
        del item.config.stash[_CURRENT]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    if item.get_closest_marker(MARKER):
        run = getattr(item, "funcargs", {}).get("accepted")
        if run is None:
            raise RunBroke(f"@pytest.mark.{MARKER} works on test functions only: nothing was run")
        assert_valid(run)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, RunUnknown | RunBroke):
        report.outcome = "failed"
        if hasattr(report, "wasxfail"):
            del report.wasxfail  # an expected failure is one that was seen; this run saw nothing
        if report.when == "call":
            report.when = "setup"  # whatever comes from there is an error, in the summary and in JUnit
    return report


def _plan(marker: pytest.Mark) -> _Plan:
    """The marker's arguments. Raises RunBroke when they can't be."""
    try:
        return _Plan(*marker.args, **marker.kwargs)
    except TypeError as error:
        said = str(error).replace("_Plan.__init__()", f"@pytest.mark.{MARKER}")
        raise RunBroke(said) from error


def _ini(name: str) -> str:
    return f"harness_{name.replace('-', '_')}"


def _text(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"--harness-{name}")
    return str(config.getini(_ini(name)) if given is None else given)


def _word(config: pytest.Config, name: str, known: tuple[str, ...]) -> str:
    word = _text(config, name)
    if word not in known:
        raise RunBroke(f"--harness-{name} or {_ini(name)}: expected one of {', '.join(known)}, got {word!r}")
    return word


def _switch(config: pytest.Config, name: str) -> bool:
    return bool(config.getoption(f"--harness-{name}") or config.getini(_ini(name)))
