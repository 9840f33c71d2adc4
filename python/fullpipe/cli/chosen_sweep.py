"""Which of a store's sweeps a command shows, and what it says of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullpipe.cli.output import message

if TYPE_CHECKING:
    from fullpipe.sweep.store import Store

#: Other sweeps that are named.
_MOST_NAMED = 4


def say_which(store: Store, wanted: str | None) -> None:
    """Names the newest sweep, and others, where the user named none of several."""
    from fullpipe.sweep.listing import named, shown

    listed = store.listing()
    if wanted is not None or len(listed) < 2:
        return
    *others, newest = listed
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    message(
        f"this is {shown(newest)}, the newest of {len(listed)} sweeps; --sweep shows another: "
        f"{named(others[-_MOST_NAMED:])}{more}, or all"
    )
