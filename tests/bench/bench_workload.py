"""How many row changes per second one process commits, flat out or at a rate, on a source of its own.

python -m tests.bench.bench_workload --port PORT --password PASSWORD [--seconds 20] [--rate N]
"""

from __future__ import annotations

import argparse

from harness.model import Address, Credentials
from harness.source import mysql
from harness.source.workload import OrdersWorkload
from harness.waiting import pause


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=int, default=None, help="row changes per second; flat out without it")
    parser.add_argument("--initial-rows", type=int, default=10_000)
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
    workload = OrdersWorkload(
        connect=lambda: mysql.connect(address, credentials),
        seed=1,
        rate=options.rate,
        initial_rows=options.initial_rows,
    )
    workload.prepare()
    before = workload.committed()
    workload.start()
    pause(options.seconds)
    outcome = workload.stop()
    changes = outcome.operations - before
    print(  # noqa: T201 - a script's answer
        f"{changes / outcome.seconds:,.0f} committed row changes/s"
        f" ({changes:,} in {outcome.seconds:.1f} s, {outcome.transactions:,} transactions,"
        f" {server.name} {server.version}, sync_binlog={sync_binlog}) {outcome.error}"
    )


if __name__ == "__main__":
    main()
