"""How the program ends: one message, one exit status. Loads no library."""

from __future__ import annotations

import sys
from typing import NoReturn

#: Exit status of what Ctrl-C or SIGTERM ended: 128 + SIGINT, as shells have it.
INTERRUPTED = 130


def fail(message: str, status: int) -> NoReturn:
    """Prints one message and exits."""
    print(f"fullpipe: {message}", file=sys.stderr)
    sys.exit(status)
