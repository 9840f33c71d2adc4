"""The command line: one file for each group of commands, no logic of its own.

Exit status 2 means bad input, 1 a failed run, 130 an interruption: Ctrl-C or SIGTERM. A command
loads what it needs when it runs. Typer declares, explains and checks what may be written
(`whole`); it takes longer to load than a shell waits for an answer and a run for its plan, so
both go by a table made of its commands (`table`), and whatever the table does not settle goes to
Typer.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from fullpipe.base.errors import RunError, UserError
from fullpipe.cli import libraries
from fullpipe.cli.ending import INTERRUPTED, fail

#: Set by a shell that asks what completes a line.
COMPLETE_VARIABLE = "_FULLPIPE_COMPLETE"


def main() -> None:
    """Runs the command line; exits with its status."""
    # `timeout`, a batch system or a service manager end a run as Ctrl-C does: nothing is lost.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    libraries.tell()
    # Libraries make little garbage while they load, and what lives at the end goes with the
    # process: looking for cycles in it is a quarter of a short command's time.
    gc.set_threshold(100_000)
    try:
        _run()
    finally:
        # nanobind, by which DuckDB is called, tells on stderr what nobody collected at the end.
        if "duckdb" not in sys.modules:
            gc.freeze()


def _run() -> None:
    try:
        status = _answer() if COMPLETE_VARIABLE in os.environ else _call()
    except UserError as error:
        fail(str(error), 2)
    except RunError as error:
        fail(str(error), 1)
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    if status == INTERRUPTED:  # what typer makes of KeyboardInterrupt
        fail("interrupted", INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def _call() -> object:
    from fullpipe.cli.table import called

    call = called(sys.argv[1:])
    if call is not None:
        return call()
    from fullpipe.cli.whole import run

    return run()


def _answer() -> object:
    from fullpipe.cli.answering import answer

    given = answer(os.environ, COMPLETE_VARIABLE)
    if given is not None:
        text, status = given
        if text is not None:
            print(text)
        return status
    from fullpipe.cli.whole import run

    return run()
