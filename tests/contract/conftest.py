"""Fixtures that several contract tests share."""

from source_server import address

__all__ = ["address"]
