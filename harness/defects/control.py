"""The control: all is written anew as for a defect, with the rows in another order, and nothing is wrong."""

from __future__ import annotations

import random

import pyarrow as pa

from harness.defects.files import read, write
from harness.defects.sink import Sink
from harness.errors import NoPlace
from harness.model import Evidence


def written_anew(evidence: Evidence, rng: random.Random) -> Evidence:
    """Nothing is wrong: rows stand in another order, as another reader might give them."""
    for contract in evidence.tables:
        try:
            sink = Sink(evidence, contract)
        except NoPlace:
            continue  # nothing of this table was kept that a defect could be planted in
        order = list(range(sink.changes.num_rows))
        rng.shuffle(order)
        sink.replace(sink.changes.take(pa.array(order, pa.int64())))
        evidence = sink.settled()
    for fence in evidence.fences:
        if fence.source_rows:
            rows = read(evidence, fence.source_rows)
            order = list(range(rows.num_rows))
            rng.shuffle(order)
            write(evidence, fence.source_rows, rows.take(pa.array(order, pa.int64())))
    return evidence
