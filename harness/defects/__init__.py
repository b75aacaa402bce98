"""The registry of defects that are planted into evidence to prove that the oracles can fail.

A new defect is a function in one of these files, and a line in the file's DEFECTS. What is planted is
consistent: a row that a sink lost is in none of the readers' answers since, nor in the history, nor in the
counts of snapshots and manifests, unless it is just that which is wrong.
"""

from __future__ import annotations

from harness.defects import (
    aggregates,
    appends,
    changelogs,
    commits,
    faults,
    histories,
    loads,
    readers,
    recovery,
    rows,
    runs,
    snapshots,
    truths,
)
from harness.defects.defect import Defect

DEFECTS: dict[str, Defect] = {
    defect.name: defect
    for group in (
        rows,
        appends,
        aggregates,
        snapshots,
        changelogs,
        commits,
        recovery,
        faults,
        loads,
        readers,
        truths,
        histories,
        runs,
    )
    for defect in group.DEFECTS
}
