"""How many row changes per second one process commits, flat out or at a rate, on a source of its own.

Says too how fast the first rows were inserted and how fast each table is read back.

python -m tests.bench.bench_workload --port PORT --password PASSWORD [--seconds 20] [--rate N]
"""

from __future__ import annotations

import argparse
import time

from harness.model import Address, Credentials
from harness.source import mysql
from harness.source.templates import TEMPLATES
from harness.source.workload import SourceWorkload
from harness.waiting import pause


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=int, default=None, help="row changes per second; flat out without it")
    parser.add_argument("--initial-rows", type=int, default=10_000, help="in each table")
    parser.add_argument("--table", action="append", choices=tuple(TEMPLATES), help="all without it")
    parser.add_argument("--fresh", action="store_true", help="DROP the database `shop` first")
    options = parser.parse_args()

    address = Address(host="127.0.0.1", port=options.port)
    credentials = Credentials(user="root", secret=options.password)
    asking = mysql.connect(address, credentials)
    server = mysql.check_cdc_readable(asking)
    ((sync_binlog,),) = mysql.query(asking, "SELECT @@sync_binlog")
    if options.fresh:
        mysql.query(asking, "DROP DATABASE IF EXISTS shop")
    asking.close()
    workload = SourceWorkload(
        connect=lambda: mysql.connect(address, credentials),
        seed=1,
        rate=options.rate,
        initial_rows=options.initial_rows,
        tables=options.table or tuple(TEMPLATES),
    )
    began = time.monotonic()
    workload.prepare()
    loaded_s = time.monotonic() - began
    before = workload.committed()
    workload.start()
    pause(options.seconds)
    outcome = workload.stop()
    changes = outcome.operations - before
    print(f"{before / loaded_s:,.0f} first rows/s ({before:,} in {loaded_s:.1f} s)")  # noqa: T201
    print(  # noqa: T201 - a script's answer
        f"{changes / outcome.seconds:,.0f} committed row changes/s"
        f" ({changes:,} in {outcome.seconds:.1f} s, {outcome.transactions:,} transactions,"
        f" {server.name} {server.version}, sync_binlog={sync_binlog}) {outcome.error}"
    )
    reading = mysql.connect(address, credentials)
    for table in options.table or TEMPLATES:
        template = TEMPLATES[table]
        began = time.monotonic()
        found = mysql.rows(reading, template.contract, template.row_schema)
        read_s = time.monotonic() - began
        print(f"{table}: {found.num_rows / read_s:,.0f} rows/s read back ({found.num_rows:,})")  # noqa: T201
    reading.close()


if __name__ == "__main__":
    main()
