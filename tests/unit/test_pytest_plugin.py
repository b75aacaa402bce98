"""The pytest plugin: INVALID fails a test, what proves nothing is an error, and nobody else is disturbed."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import factories
import pytest

from harness import shell
from harness.acceptance import Accepted  # here, since each inner session forgets what it imports
from harness.model import Finding, Severity, Verdict
from harness.pytest_plugin import RunBroke, RunInvalid, RunUnknown, assert_valid

pytest_plugins = ("pytester",)

CONFTEST = '''
import factories
import pytest
from harness.acceptance import Accepted
from harness.errors import UsageError
from harness.model import Event, Verdict

INVALID = dict(verdict=Verdict.INVALID, exit_code=1, oracles=(factories.oracle(Verdict.INVALID),))
UNKNOWN = dict(verdict=Verdict.UNKNOWN, exit_code=2, faults=(factories.proof(bit=False),))
CHANGES = {
    1: INVALID,
    2: UNKNOWN,
    3: dict(verdict=Verdict.UNKNOWN, exit_code=3, failure="no room left"),
    9: dict(exit_code=2, events=(Event(at_ms=1, kind="interrupted", text="stopped by the user"),)),
}

@pytest.fixture(scope="session")
def harness_runner():
    """The seed says how the run ends; everything asked for is printed."""
    def run(scenario, *, options, reports, listener, keep, reproduce, before_reconcile):
        listener.phase("stack up")
        print("ASKED", scenario.name, scenario.profile, scenario.seed, scenario.workload.rate)
        print("OPTIONS", options.images, options.registry or "-", options.source, options.may_install)
        print("REST", reports, keep, reproduce)
        if before_reconcile:
            before_reconcile(None, 1)
        if scenario.seed == 4:
            raise UsageError("can't be", todo="do otherwise")
        if scenario.seed == 5:
            raise ZeroDivisionError("a bug")
        result = factories.result(seed=scenario.seed, **CHANGES.get(scenario.seed, {}))
        return Accepted(result=result, folder=reports / "r1", kept="")
    return run
'''


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project that uses the plugin, with a runner that needs no stack."""
    pytester.makeconftest(CONFTEST)
    pytester.makeini(
        "[pytest]\naddopts = --strict-markers --strict-config\nfilterwarnings = error\nxfail_strict = true\n"
    )
    return pytester


def run(suite: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    """Run these tests with the plugin, as it is loaded by its entry point."""
    suite.makepyfile("import pytest\nfrom harness.pytest_plugin import assert_valid\n\n" + source)
    return suite.runpytest_inprocess("-p", "paimon_harness", "--junitxml=junit.xml", *arguments)


def junit(suite: pytest.Pytester) -> dict[str, list[str]]:
    """What JUnit holds beneath each test case, apart from captured output and properties."""
    cases = ElementTree.parse(suite.path / "junit.xml").iter("testcase")  # noqa: S314 - written by pytest here
    return {
        case.attrib["name"]: [
            child.tag for child in case if child.tag not in ("properties", "system-out", "system-err")
        ]
        for case in cases
    }


def marked(seed: int, *, more: str = "") -> str:
    return (
        f"{more}\n@pytest.mark.exactly_once(scenario='clean', seed={seed})\n"
        "def test_marked():\n    print('BODY RAN')\n"
    )


def called(seed: int, *, more: str = "") -> str:
    return f"{more}\ndef test_called(accept):\n    assert_valid(accept('clean', seed={seed}))\n"


@pytest.mark.parametrize("test", [marked, called])
def test_a_valid_run_passes(suite: pytest.Pytester, test: object) -> None:
    done = run(suite, test(0), "-s")  # type: ignore[operator]

    done.assert_outcomes(passed=1)
    assert [[]] == list(junit(suite).values())
    done.stdout.fnmatch_lines(["*ASKED clean fast 0 *"])


def test_the_body_of_a_marked_test_runs_after_a_valid_run_only(suite: pytest.Pytester) -> None:
    assert "BODY RAN" in run(suite, marked(0), "-s").stdout.str()
    assert "BODY RAN" not in run(suite, marked(1), "-s").stdout.str()
    assert "BODY RAN" not in run(suite, marked(2), "-s").stdout.str()


@pytest.mark.parametrize("test", [marked, called])
def test_an_invalid_run_is_a_failure_that_names_the_findings(suite: pytest.Pytester, test: object) -> None:
    done = run(suite, test(1))  # type: ignore[operator]

    done.assert_outcomes(failed=1)
    assert [["failure"]] == list(junit(suite).values())
    done.stdout.fnmatch_lines(["*RunInvalid: INVALID: kill-taskmanager, seed 1*", "*again: harness run*"])


@pytest.mark.parametrize("seed", [2, 3, 4, 5], ids=["unknown", "harness failed", "refused", "crashed"])
@pytest.mark.parametrize("test", [marked, called])
def test_what_proves_nothing_is_an_error_and_never_a_failure(
    suite: pytest.Pytester, test: object, seed: int
) -> None:
    done = run(suite, test(seed))  # type: ignore[operator]

    done.assert_outcomes(errors=1)
    assert 1 == done.ret
    assert [["error"]] == list(junit(suite).values())


@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("test", [marked, called])
def test_an_expected_failure_does_not_excuse_what_proves_nothing(
    suite: pytest.Pytester, test: object, seed: int
) -> None:
    done = run(suite, test(seed, more="@pytest.mark.xfail(strict=False)"))  # type: ignore[operator]

    done.assert_outcomes(errors=1)
    assert [["error"]] == list(junit(suite).values())


def test_an_expected_failure_may_expect_an_invalid_run(suite: pytest.Pytester) -> None:
    run(suite, called(1, more="@pytest.mark.xfail(strict=True)")).assert_outcomes(xfailed=1)


def test_nothing_is_run_twice_and_nothing_is_skipped(suite: pytest.Pytester) -> None:
    done = run(suite, marked(2) + called(1), "-s")

    assert 2 == done.stdout.str().count("ASKED")
    done.assert_outcomes(failed=1, errors=1, skipped=0)


def test_the_marked_test_can_look_at_its_run(suite: pytest.Pytester) -> None:
    source = (
        "@pytest.mark.exactly_once(scenario='clean', seed=0)\n"
        "def test_looks(accepted):\n    assert 0 == accepted.result.seed\n"
        "@pytest.mark.exactly_once('clean', seed=0)\n"
        "def test_fails(accepted):\n    assert 1 == accepted.result.seed\n"
    )
    run(suite, source).assert_outcomes(passed=1, failed=1)


def test_one_run_can_be_looked_at_by_many_tests(suite: pytest.Pytester) -> None:
    source = (
        "@pytest.fixture(scope='module')\n"
        "def chapter(accept):\n    return accept('clean', seed=0)\n"
        "def test_one(chapter):\n    assert_valid(chapter)\n"
        "def test_two(chapter):\n    assert chapter.result.faults\n"
    )
    done = run(suite, source, "-s")

    done.assert_outcomes(passed=2)
    assert 1 == done.stdout.str().count("ASKED")


def test_a_mark_on_one_parameter_runs_for_that_one_only(suite: pytest.Pytester) -> None:
    source = (
        "one = pytest.param(1, marks=pytest.mark.exactly_once(scenario='clean', seed=0))\n"
        "@pytest.mark.parametrize('x', [one, 2])\n"
        "def test_x(x):\n    pass\n"
    )
    done = run(suite, source, "-s")

    done.assert_outcomes(passed=2)
    assert 1 == done.stdout.str().count("ASKED")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "@pytest.mark.exactly_once(scenaro='clean')\ndef test_x():\n    pass\n",
            "*exactly_once got an unexpected keyword argument 'scenaro'*",
        ),
        (
            "@pytest.mark.exactly_once\ndef test_x():\n    pass\n",
            "*exactly_once missing 1 required*'scenario'*",
        ),
        (
            "@pytest.mark.exactly_once('cleen')\ndef test_x():\n    pass\n",
            "*RunBroke: no scenario 'cleen'*did you mean 'clean'*",
        ),
        ("def test_x(accepted):\n    pass\n", "*`accepted` needs @pytest.mark.exactly_once*"),
        (
            "def test_x(accept):\n    accept('clean', rate=9999)\n",
            "*RunBroke: scenario clean can't be overridden*",
        ),
    ],
)
def test_a_mistake_in_a_test_is_an_error_that_says_what(
    suite: pytest.Pytester, source: str, said: str
) -> None:
    done = run(suite, source)

    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines([said])


def test_a_mark_where_nothing_can_be_run_is_an_error_and_no_pass(suite: pytest.Pytester) -> None:
    source = (
        "import unittest\n"
        "class TestIt(unittest.TestCase):\n"
        "    @pytest.mark.exactly_once(scenario='clean', seed=1)\n"
        "    def test_x(self):\n        pass\n"
    )
    done = run(suite, source)

    assert 0 == done.parseoutcomes().get("passed", 0)
    assert 1 == done.ret


def test_a_scenario_may_be_a_file_or_its_text(suite: pytest.Pytester) -> None:
    text = (Path(factories.__file__).parents[2] / "harness" / "scenarios" / "clean.yaml").read_text()
    (suite.path / "mine.yaml").write_text(text.replace("name: clean", "name: mine"))
    source = (
        "import pathlib\nFILE = pathlib.Path(__file__).with_name('mine.yaml')\n"
        "def test_file(accept):\n    accept(FILE, seed=0)\n"
        "def test_text(accept):\n    accept(FILE.read_text().replace('mine', 'text'), seed=0)\n"
    )
    done = run(suite, source, "-s")

    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*ASKED mine *", "*ASKED text *"])


def test_options_come_from_the_command_line_else_from_the_ini_file(suite: pytest.Pytester) -> None:
    defaults = run(suite, called(0), "-s").stdout
    suite.makeini(
        "[pytest]\nharness_images = build\nharness_keep = true\nharness_install = true\nharness_reports = r"
    )
    from_ini = run(suite, called(0), "-s").stdout
    arguments = ("--harness-images=pull", "--harness-registry=127.0.0.1:5000/", "--harness-reports=mine")
    given = run(suite, called(0), "-s", *arguments).stdout

    path = suite.path
    defaults.fnmatch_lines(
        ["*OPTIONS auto - mysql False", f"REST {path}/reports False pytest *::test_called"]
    )
    from_ini.fnmatch_lines(["*OPTIONS build - mysql True", f"REST {path}/r True pytest *::test_called"])
    given.fnmatch_lines(["*OPTIONS pull 127.0.0.1:5000/ mysql True", f"REST {path}/mine True *"])


def test_an_option_that_cannot_be_is_an_error(suite: pytest.Pytester) -> None:
    done = run(suite, called(0), "--harness-images=push")

    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(
        ["*--harness-images or harness_images: expected one of auto, pull, build, got 'push'*"]
    )


def test_what_a_run_tells_is_shown_with_its_failure_and_its_folder_is_in_junit(
    suite: pytest.Pytester,
) -> None:
    done = run(suite, called(1))

    done.stdout.fnmatch_lines(["*Captured stdout call*", "*stack up*"])
    root = ElementTree.parse(suite.path / "junit.xml")  # noqa: S314 - written by pytest here
    properties = {item.attrib["name"]: item.attrib["value"] for item in root.iter("property")}
    assert {"harness-run": f"{suite.path}/reports/r1", "harness-verdict": "INVALID"} == properties


def test_the_tests_own_assertion_at_a_fence_is_a_failure(suite: pytest.Pytester) -> None:
    source = (
        "def at_fence(pipeline, number):\n    assert number == 2\n"
        "def test_x(accept):\n    accept('clean', seed=0, before_reconcile=at_fence)\n"
    )
    run(suite, source).assert_outcomes(failed=1)


def test_ctrl_c_in_a_run_ends_the_session(suite: pytest.Pytester) -> None:
    source = called(9) + "def test_next():\n    print('NEXT RAN')\n"
    suite.makepyfile("import pytest\nfrom harness.pytest_plugin import assert_valid\n\n" + source)
    done = suite.runpytest_inprocess("-p", "paimon_harness", "-s", no_reraise_ctrlc=True)

    assert pytest.ExitCode.INTERRUPTED == done.ret
    assert "NEXT RAN" not in done.stdout.str()


def test_a_project_that_does_not_use_it_sees_nothing_of_it(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = --strict-markers --strict-config\nfilterwarnings = error\n")
    pytester.makepyfile(
        "import pytest, unittest\n"
        "def test_passes():\n    pass\n"
        "def test_fails():\n    assert False\n"
        "@pytest.mark.xfail\ndef test_xfails():\n    assert False\n"
        "class TestIt(unittest.TestCase):\n    def test_too(self):\n        pass\n"
        "@pytest.fixture\ndef accept():\n    return 'mine'\n"
        "def test_own_fixture(accept):\n    assert 'mine' == accept\n"
    )
    done = pytester.runpytest_inprocess("-p", "paimon_harness")

    done.assert_outcomes(passed=3, failed=1, xfailed=1)
    said = [line for line in done.outlines if not line.startswith(("plugins:", "rootdir:"))]
    assert [] == [line for line in said if "harness" in line]


def test_the_plugin_brings_nothing_heavy_with_it() -> None:
    listed = (
        "import sys, harness.pytest_plugin; "
        "heavy = ('docker', 'pyarrow', 'duckdb', 'pydantic', 'rich', 'requests', 'pymysql'); "
        "print([m for m in sys.modules if m.split('.')[0] in heavy or m.startswith('harness.')])"
    )
    done = shell.run([sys.executable, "-c", listed], timeout_s=60)

    assert "['harness.pytest_plugin']" == done.stdout.strip()


MISSING = Finding(
    code="rows-differ",
    severity=Severity.ERROR,
    what="3 keys missing",
    where="fence 2",
    examples=("order_id 17",),
    todo="look there",
)


def test_a_failure_names_every_finding_with_its_examples_and_the_folder(tmp_path: Path) -> None:
    result = factories.result(
        verdict=Verdict.INVALID,
        exit_code=1,
        oracles=(factories.oracle(Verdict.INVALID, findings=(MISSING,)),),
    )
    with pytest.raises(RunInvalid) as caught:
        assert_valid(Accepted(result=result, folder=tmp_path, kept=""))

    said = str(caught.value)
    parts = ("rows-differ (error): 3 keys missing", "fence 2", "order_id 17", "look there", f"{tmp_path}/")
    assert [] == [part for part in parts if part not in said]


@pytest.mark.parametrize(
    ("changes", "raised", "said"),
    [
        ({"faults": (factories.proof(bit=False),)}, RunUnknown, "kill-taskmanager did not bite:"),
        ({"oracles": ()}, RunUnknown, "UNKNOWN"),
        ({"oracles": (factories.oracle(examined=0),)}, RunUnknown, "UNKNOWN"),
        ({"exit_code": 2}, RunUnknown, "VALID"),
        ({"failure": "no room left", "failure_todo": "make room"}, RunBroke, "no room left\nmake room"),
        ({"exit_code": 3}, RunBroke, "HARNESS FAILED"),
    ],
)
def test_only_a_result_that_is_valid_in_every_part_passes(
    changes: dict[str, object], raised: type[Exception], said: str
) -> None:
    with pytest.raises(raised) as caught:
        assert_valid(factories.result(**changes))

    assert said in str(caught.value)


def test_a_valid_result_passes_as_it_is() -> None:
    assert_valid(factories.result())
