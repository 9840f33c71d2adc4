"""The command line: one file for each group of commands, no logic of its own.

Exit status: 2 bad input, 1 a failed run, 130 an interruption (Ctrl-C or SIGTERM). A command loads
what it needs when it runs, so that help and completion do not wait for it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from fullpipe.base.errors import RunError, UserError
from fullpipe.base.printable import message_of

#: Exit status after an interruption: 128 + SIGINT, as shells have it.
INTERRUPTED = 130
#: Settings of libraries that they read when they load; what the user has set counts.
_ENVIRONMENT = {
    # OpenBLAS's threads spin for a tenth of a second; fullpipe has no large matrices.
    "OPENBLAS_NUM_THREADS": "1",
    # A thread of Arrow's jemalloc would keep a sweep from forking its workers (engines/workers.py).
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    # Pydantic would read the metadata of every installed package to find plugins.
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}


def main() -> None:
    """Runs the command line; exits with its status."""
    # `timeout`, batch systems and service managers end a run as Ctrl-C does: nothing is lost.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    set_environment()
    try:
        from fullpipe.cli.app import app

        try:
            app(prog_name="fullpipe")
        finally:
            if sys.stdout is not None:  # None: closed
                sys.stdout.flush()  # says here what a full disk would say after the end
    except (UserError, RunError) as error:
        print(f"fullpipe: {message_of(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UserError) else 1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (OSError, MemoryError, ImportError, RecursionError) as error:
        _end(error)


def _end(error: Exception) -> NoReturn:
    """Ends the command where the machine lacks what every command needs: a place to write to,
    memory, a working directory."""
    status, reason = 1, "out of memory"
    if isinstance(error, RecursionError):
        reason = "the input is nested too deeply"
    elif isinstance(error, ImportError):
        reason = f"cannot be loaded: {str(error).splitlines()[0]}"
    elif isinstance(error, OSError):
        named = f"{error.filename}: " if error.filename else ""
        reason = f"{named}{error.strerror or error}"
        try:
            Path.cwd()
        except OSError:
            status, reason = 2, "the working directory was removed; change into another one"
    with contextlib.suppress(OSError):
        print(f"fullpipe: {message_of(reason)}", file=sys.stderr)
    # What standard output could not take must not be tried again.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(status)


def set_environment() -> None:
    """Sets what libraries read from the environment. Call it before they load."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
