"""Where recordings go for which `--out` names no folder."""

from __future__ import annotations

import itertools
import time
from pathlib import Path


def new_folder(name: str) -> Path:
    """`recordings/NAME-DATE-TIME`, with a number where that is there: a second may have several
    runs, and a clock that is set back, as when summer time ends, tells a time twice."""
    named = Path("recordings") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    others = (named.with_name(f"{named.name}-{count}") for count in itertools.count(2))
    return next(folder for folder in itertools.chain([named], others) if not folder.exists())
