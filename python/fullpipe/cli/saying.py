"""Lines to a person, on stderr, so that stdout can be piped. Loads nothing but for a terminal."""

from __future__ import annotations

import sys


def say(line: str, style: str | None = None) -> None:
    """Prints one line as it is: not wrapped, since it may hold a path."""
    if not sys.stderr.isatty():
        print(line, file=sys.stderr)
        return
    from fullpipe.cli.output import messages

    messages.print(line, style=style, markup=False, soft_wrap=True)


def warn(what: str, reasons: list[str]) -> None:
    """Prints why a run is not to be trusted, one line a reason."""
    for reason in reasons:
        say(f"warning: {what}: {reason}", "bold red")
