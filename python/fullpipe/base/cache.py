"""The user's cache: files that fullpipe can make again. Knows none of them."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """`$XDG_CACHE_HOME/fullpipe`, by default `~/.cache/fullpipe`; it may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fullpipe"
