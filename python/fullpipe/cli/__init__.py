"""The command line: one file for each group of commands, no logic of its own.

Exit status 2 means bad input, 1 a failed run, 130 an interruption: Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import importlib
import signal
import sys
from types import ModuleType

import typer
from typer.exceptions import TyperException

from fullpipe.cli.output import INTERRUPTED, fail
from fullpipe.errors import RunError, UserError

#: Command -> module and function.
_COMMANDS = {
    "run": "run:run",
    "compare": "compare:compare",
    "choose": "choose:choose",
    "report": "report:report",
    "schema": "schema:schema",
    "doctor": "doctor:doctor",
    "query": "query:query",
    "plot": "plot:plot",
    "effects": "plot:effects",
    "replay": "replay:replay",
}
#: Group -> module with `app`.
_GROUPS = ["cc", "experiment", "sweep", "model", "flent", "kernel", "agent"]


def _app(wanted: str | None) -> typer.Typer:
    """The command that is wanted, or all: a command must not wait for the libraries of others."""
    app = typer.Typer(
        name="fullpipe",
        help="A congestion-control laboratory: the same algorithm in the Linux kernel and in a "
        "deterministic simulator, with recordings, statistics and reports.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(lambda: None)  # else a single command would take the program's name
    known = wanted in _COMMANDS or wanted in _GROUPS
    for name, target in _COMMANDS.items():
        if known and name != wanted:
            continue
        module, _, function = target.partition(":")
        found = _module(module)
        if found is not None:
            app.command(name)(getattr(found, function))
    for name in _GROUPS:
        if known and name != wanted:
            continue
        found = _module(name)
        if found is not None:
            app.add_typer(found.app, name=name)
    return app


def _module(name: str) -> ModuleType | None:
    full = f"fullpipe.cli.{name}"
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name != full:
            raise
        return None


def main() -> None:
    """Runs the command line; exits with its status."""
    # `timeout`, a batch system or a service manager end a run as Ctrl-C does: nothing is lost.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app = _app(next(iter(sys.argv[1:]), None))
        status = app(standalone_mode=False)
    except typer.Abort:
        fail("interrupted", INTERRUPTED)
    except TyperException as error:
        context = getattr(error, "ctx", None)
        text = error.format_message() if hasattr(error, "format_message") else str(error)
        fail(f"{text} (see {context.command_path if context else 'fullpipe'} --help)", 2)
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
