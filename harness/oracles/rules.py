"""A rule that admits no exception: a check, and a finding with examples when it has any."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import Verdict
from harness.oracles.comparison import MAX_EXAMPLES
from harness.oracles.judgement import Judgement


class Rules:
    """Rules about one table, and what is found against them."""

    def __init__(self, judgement: Judgement, table: str) -> None:
        self.judgement = judgement
        self.table = table

    def require_none(
        self,
        name: str,
        exceptions: Sequence[str],
        code: str,
        what: str,
        *,
        held: str = "none",
        todo: str = "",
    ) -> None:
        """INVALID when there are exceptions, each said in a line. `held` says what was looked at else."""
        if not self.check(
            name,
            expected="no exception",
            actual=f"{len(exceptions)} exceptions" if exceptions else held,
            held=not exceptions,
        ):
            self.find(
                Verdict.INVALID, code, f"{what}: {len(exceptions)} times", examples=exceptions, todo=todo
            )

    def check(self, name: str, *, expected: str, actual: str, held: bool) -> bool:
        """Record a comparison of this table."""
        return self.judgement.check(f"{self.table}: {name}", expected=expected, actual=actual, held=held)

    def find(
        self,
        verdict: Verdict,
        code: str,
        what: str,
        *,
        expected: str = "",
        actual: str = "",
        examples: Sequence[str] = (),
        todo: str = "",
    ) -> None:
        """Record a finding about this table."""
        self.judgement.find(
            verdict,
            code,
            what,
            where=self.table,
            expected=expected,
            actual=actual,
            examples=tuple(examples[:MAX_EXAMPLES]),
            todo=todo,
        )
