"""Where the sink's warehouse is: how Flink and how this machine reach it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import Credentials


@dataclass(frozen=True, kw_only=True)
class Warehouse:
    """A Paimon filesystem catalog on S3.

    `inside` is the S3 endpoint as the stack's nodes see it, `outside` as this machine sees it;
    both are URLs. `path` is the warehouse, such as s3://warehouse/.
    """

    path: str
    inside: str
    outside: str
    credentials: Credentials
