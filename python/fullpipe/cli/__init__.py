"""The command line: one file for each group of commands, no logic of its own.

Exit status: 2 bad input, 1 a failed run, 130 an interruption (Ctrl-C or SIGTERM). A command loads
what it needs when it runs, so that help and completion do not wait for it.
"""

from __future__ import annotations

import os
import signal
import sys

from fullpipe.base.errors import RunError, UserError

#: Exit status after an interruption: 128 + SIGINT, as shells have it.
INTERRUPTED = 130
#: Settings of libraries that they read when they load; what the user has set counts.
_ENVIRONMENT = {
    # OpenBLAS's threads spin for a tenth of a second; fullpipe has no large matrices.
    "OPENBLAS_NUM_THREADS": "1",
    # A thread of Arrow's jemalloc would keep a sweep from forking its workers (sweep/pool.py).
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

        app()
    except (UserError, RunError) as error:
        print(f"fullpipe: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UserError) else 1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def set_environment() -> None:
    """Sets what libraries read from the environment. Call it before they load."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
