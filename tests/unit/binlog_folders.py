"""Binlogs to judge: those of sources that committed what a ledger says, in the folder of the evidence."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.model import Binlog, TableContract


def binlog(ledger: pa.Table, contract: TableContract, folder: Path) -> Binlog:
    """A binlog that has the operations of a ledger, in its order."""
    file = f"binlog-{contract.name}.parquet"
    pq.write_table(ledger.select(["kind", *contract.columns]), folder / file)
    return Binlog(table=contract.name, operations=file)
