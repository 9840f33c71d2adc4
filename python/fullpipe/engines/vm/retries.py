"""A machine whose boot or resumption fails is booted once more. Each such case is a line in the
user's cache, so that a host on which this happens often can be seen."""

from __future__ import annotations

from datetime import UTC, datetime

from fullpipe.base.cache import user_cache

_FILE = "boots-again"


def note(reason: str) -> None:
    """Adds a case, with its time."""
    folder = user_cache()
    folder.mkdir(parents=True, exist_ok=True)
    words = " ".join(reason.split())
    with (folder / _FILE).open("a", encoding="utf-8") as file:
        file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {words}\n")


def count() -> int:
    """How many cases there have been on this machine."""
    try:
        return (user_cache() / _FILE).read_text(encoding="utf-8").count("\n")
    except FileNotFoundError:
        return 0
