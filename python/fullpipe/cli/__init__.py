"""The command line: one file for each group of commands, no logic of its own.

Exit status 2 means bad input, 1 a failed run, 130 an interruption: Ctrl-C or SIGTERM. A command
loads what it needs when it runs: help and completion wait for no library but Typer.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from fullpipe.cli import libraries
from fullpipe.cli.completion import COMPLETE_VARIABLE, prepare
from fullpipe.cli.ending import INTERRUPTED, fail
from fullpipe.errors import RunError, UserError

#: Command -> its function, in a module beside this one, and its line in the overview.
_COMMANDS = {
    "run": ("run:run", "Runs a scenario and records it."),
    "compare": ("compare:compare", "Compares congestion controls on one path."),
    "test": ("test:test", "Runs one of Flent's tests by name."),
    "choose": ("choose:choose", "Ranks queues and congestion controls for a path."),
    "scorecard": ("scorecard:scorecard", "Says what a congestion control is worth."),
    "hunt": ("hunt:hunt", "Finds the path on which a congestion control does worst."),
    "report": ("report:report", "Writes a self-contained HTML page from recordings."),
    "schema": ("schema:schema", "Prints the JSON schema of scenario files."),
    "doctor": ("doctor:doctor", "Says what this machine can run, and what mends it."),
    "query": ("query:query", "Asks a store with SQL."),
    "plot": ("plot:plot", "Draws a store: lines, heat maps, boxes, fronts."),
    "effects": ("plot:effects", "Says which axis of a store matters."),
    "serve": ("serve:serve", "Serves a page: a sweep as it fills, and a bench."),
    "replay": ("replay:replay", "Holds a kernel's calls against the native build."),
    "completion": ("completion:completion", "Prints what completes words in a shell."),
}
#: Group -> its line in the overview; its module has `app`.
_GROUPS = {
    "cc": "Congestion controls and their constants.",
    "experiment": "The papers as experiments, with verdicts.",
    "sweep": "Grids of scenarios that resume.",
    "model": "Theories: predictions without a run.",
    "trace": "Links that change: traces made, and looked at.",
    "flent": "Flent's files: import, export, analysis of variance.",
    "traffic": "Traces of flows: from captures, made.",
    "kernel": "Our congestion controls in this host's kernel.",
    "agent": "This host as the far end of runs between two hosts.",
}


def _app(wanted: str | None) -> typer.Typer:
    """The command that is wanted, else all of them by name only."""
    app = typer.Typer(
        name="fullpipe",
        help="A congestion-control laboratory: the same algorithm in the Linux kernel and in a "
        "deterministic simulator, with recordings, statistics and reports.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    if wanted in _COMMANDS:
        module, _, function = _COMMANDS[wanted][0].partition(":")
        app.command(wanted)(getattr(importlib.import_module(f"fullpipe.cli.{module}"), function))
    elif wanted in _GROUPS:
        app.add_typer(importlib.import_module(f"fullpipe.cli.{wanted}").app, name=wanted)
    else:
        for name, (_, line) in _COMMANDS.items():
            app.command(name, short_help=line)(_nothing)
        for name, line in _GROUPS.items():
            app.command(name, short_help=line)(_nothing)
    return app


def _print_version(asked: bool) -> None:
    if asked:
        from fullpipe import __version__

        print(f"fullpipe {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="print the version", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    pass


def _nothing() -> None:
    """Stands for a command in the overview."""


def _words() -> list[str]:
    """The words after the program's name, also where a shell asks what completes them."""
    if COMPLETE_VARIABLE not in os.environ:
        return sys.argv[1:]
    prepare()
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return line.split()[1:]


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
        gc.freeze()


def _run() -> None:
    try:
        app = _app(next(iter(_words()), None))
        status = app(standalone_mode=False, prog_name="fullpipe")
    except typer.Abort:
        fail("interrupted", INTERRUPTED)
    except TyperException as error:
        context = getattr(error, "ctx", None)
        text = error.format_message()
        if text.startswith("Usage: "):  # no command was given: its help is the message
            print(text, file=sys.stderr)
            sys.exit(2)
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
