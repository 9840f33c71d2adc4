"""All commands and groups of commands. Knows none of their options."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fullpipe.cli import (
    agent,
    cc,
    experiment,
    flent,
    kernel,
    model,
    sweep,
    trace,
    traffic,
)
from fullpipe.cli.cache import cache
from fullpipe.cli.choose import choose
from fullpipe.cli.ci import ci
from fullpipe.cli.compare import compare
from fullpipe.cli.conformance import conformance
from fullpipe.cli.differential import differential
from fullpipe.cli.doctor import doctor
from fullpipe.cli.hunt import hunt
from fullpipe.cli.packetdrill import packetdrill
from fullpipe.cli.plot import effects, plot
from fullpipe.cli.qlog import qlog
from fullpipe.cli.query import query
from fullpipe.cli.replay import replay
from fullpipe.cli.report import report
from fullpipe.cli.run import run
from fullpipe.cli.schema import schema
from fullpipe.cli.scorecard import scorecard
from fullpipe.cli.serve import serve
from fullpipe.cli.test import test
from fullpipe.cli.tune import tune

#: Options until version 0.2 -> what a style file has instead.
_STYLE_KEYS = {
    "--font-size": "font_size",
    "--no-title": "title = false",
    "--log-x": "log_x",
    "--log-y": "log_y",
    "--legend": "legend",
}


class _PlainErrors(TyperGroup):
    """Says what is wrong with an option in this program's words: Typer has Pydantic's."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            errors = getattr(error.__cause__, "errors", None)
            if errors is not None:
                from fullpipe.base.refusals import right

                (first, *_) = errors()
                value, expected = repr(first["input"]), right(first)
                error.message = expected if value in expected else f"{value}: {expected}"
            raise
        except Exception as error:
            _name_style_key(error)
            raise


def _name_style_key(error: Any) -> None:
    """Says of an option that no longer is one which key of a style file has its place."""
    key = _STYLE_KEYS.get(getattr(error, "option_name", ""))
    if key is not None and any(param.name == "style" for param in error.ctx.command.params):
        error.message += f": write {key} into a file for --style"
        error.possibilities = None


app = typer.Typer(
    cls=_PlainErrors,
    name="fullpipe",
    help="A congestion-control laboratory: the same algorithm in the Linux kernel and in a "
    "deterministic simulator, with recordings, statistics and reports.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    run,
    compare,
    test,
    choose,
    scorecard,
    ci,
    conformance,
    differential,
    packetdrill,
    hunt,
    tune,
    report,
    schema,
    doctor,
    query,
    plot,
    effects,
    serve,
    qlog,
    replay,
    cache,
):
    app.command()(command)
for group in (cc, experiment, sweep, model, trace, flent, traffic, kernel, agent):
    app.add_typer(group.app, name=group.__name__.rpartition(".")[2])


def _print_version(is_given: bool) -> None:
    if is_given:
        from fullpipe.base.commit import build_version

        print(f"fullpipe {build_version()}")
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass
