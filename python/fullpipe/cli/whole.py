"""All commands as Typer's: what it explains (help), checks and refuses. Loads only the command that
is wanted.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from fullpipe.cli import COMPLETE_VARIABLE
from fullpipe.cli.completion import prepare
from fullpipe.cli.ending import INTERRUPTED, fail

#: Command -> its function, in a module beside this one, and its line in the overview.
COMMANDS = {
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
GROUPS = {
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


def run() -> object:
    """Does what the words after the program's name say, or answers a shell; returns the status."""
    try:
        return app(next(iter(_words()), None))(standalone_mode=False, prog_name="fullpipe")
    except typer.Abort:
        fail("interrupted", INTERRUPTED)
    except TyperException as error:
        context = getattr(error, "ctx", None)
        text = error.format_message()
        if text.startswith("Usage: "):  # no command was given: its help is the message
            print(text, file=sys.stderr)
            sys.exit(2)
        fail(f"{text} (see {context.command_path if context else 'fullpipe'} --help)", 2)


def app(wanted: str | None) -> typer.Typer:
    """The command that is wanted, else all of them by name only."""
    found = typer.Typer(
        name="fullpipe",
        help="A congestion-control laboratory: the same algorithm in the Linux kernel and in a "
        "deterministic simulator, with recordings, statistics and reports.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    # Typer asks Pydantic about a --help that is not given before the command; where one is given,
    # no command is wanted.
    found.callback(add_help_option=wanted not in {*COMMANDS, *GROUPS})(_options)
    if wanted in COMMANDS:
        module, _, function = COMMANDS[wanted][0].partition(":")
        found.command(wanted)(getattr(importlib.import_module(f"fullpipe.cli.{module}"), function))
    elif wanted in GROUPS:
        found.add_typer(importlib.import_module(f"fullpipe.cli.{wanted}").app, name=wanted)
    else:
        for name, (_, line) in COMMANDS.items():
            found.command(name, short_help=line)(_nothing)
        for name, line in GROUPS.items():
            found.command(name, short_help=line)(_nothing)
    return found


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
