"""Every exception that the harness raises on purpose.

HarnessError                   the harness could not do its work: exit code 3
├── UsageError                 the person asked for something that can't be: unknown word, bad value
│   └── ScenarioError          a scenario file that is malformed; says file, line and field
├── PreflightError             the machine lacks something: engine, memory, disk, a free port
├── ArtifactError              a component could not be fetched, or its checksum is not the pinned one
├── ImageError                 an image could not be pulled or built, or is not what it says
├── StackError                 a node did not come up, or is not there
├── SourceError                the source database refused, or cannot be read by CDC
├── FlinkError                 Flink's REST API or SQL gateway refused
│   ├── FlinkUnreachable       no answer at all: the JobManager or the gateway is down or starting
│   ├── SqlError               a statement failed; carries the engine's own message
│   └── JobEnded               a job is in a terminal state although it was awaited
├── ReaderError                the sink could not be read
│   └── SinkFilesMissing       … because files that a snapshot refers to are gone (this is INVALID)
├── FaultError                 a fault could not be injected or healed
├── NoPlace                    a planted defect has no place in a run: nothing there to damage so
└── WaitTimeout                something awaited did not come; says what, how long, last value seen
"""

from __future__ import annotations


class HarnessError(Exception):
    """What happened, where, expected against actual, and what to do about it."""

    def __init__(self, what: str, *, todo: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.what}\n  → {self.todo}" if self.todo else self.what


class UsageError(HarnessError):
    """The person asked for something that can't be."""


class ScenarioError(UsageError):
    """A scenario file that is malformed."""


class PreflightError(HarnessError):
    """The machine lacks something that a run needs."""


class ArtifactError(HarnessError):
    """A component could not be fetched, or its checksum is not the pinned one."""


class ImageError(HarnessError):
    """An image could not be pulled or built, or is not what it says."""


class StackError(HarnessError):
    """A node did not come up, or is not there."""


class SourceError(HarnessError):
    """The source database refused, or cannot be read by CDC."""


class FlinkError(HarnessError):
    """Flink's REST API or SQL gateway refused."""


class FlinkUnreachable(FlinkError):
    """No answer at all: the JobManager or the gateway is down or starting."""


class SqlError(FlinkError):
    """A statement failed."""


class JobEnded(FlinkError):
    """A job is in a terminal state although it was awaited."""

    def __init__(self, what: str, *, state: str, todo: str = "") -> None:
        super().__init__(what, todo=todo)
        self.state = state


class ReaderError(HarnessError):
    """The sink could not be read."""


class SinkFilesMissing(ReaderError):
    """Files that a snapshot refers to are gone."""


class FaultError(HarnessError):
    """A fault could not be injected or healed."""


class NoPlace(HarnessError):
    """A planted defect has no place in a run."""


class WaitTimeout(HarnessError):
    """Something awaited did not come in time."""
