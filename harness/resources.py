"""Where the files that are not Python lie: compose/ and jobs/, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from harness.errors import HarnessError

PACKAGE = Path(__file__).resolve().parent


def folder(name: Literal["compose", "jobs"], *, package: Path = PACKAGE) -> Path:
    """The folder `compose` or `jobs` that belongs to this harness.

    An installed wheel carries them in harness/_data (looked at first, since site-packages may hold a
    foreign package named compose); a checkout has them beside harness/. Raises HarnessError when
    neither is there.
    """
    places = (package / "_data" / name, package.parent / name)
    for place in places:
        if place.is_dir():
            return place
    raise HarnessError(
        f"no folder {name!r} of the harness; looked at {' and '.join(str(place) for place in places)}",
        todo="run from a complete checkout, or install the wheel again",
    )
