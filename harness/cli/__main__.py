"""`python -m harness.cli` is `harness`."""

from __future__ import annotations

from harness.cli import main

main()
