"""`fullpipe completion`: what a shell needs to complete words, and the words themselves."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from fullpipe.cli import COMPLETE_VARIABLE

if TYPE_CHECKING:
    import typer
else:
    from fullpipe.cli.later import typer


class Shell(StrEnum):
    """The shells whose completion is tested."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="the shell that reads it")],
) -> None:
    """Prints what completes commands, options and names in a shell.

    bash: eval "$(fullpipe completion bash)" in ~/.bashrc. zsh: the same in ~/.zshrc, after
    compinit. fish: fullpipe completion fish > ~/.config/fish/completions/fullpipe.fish"""
    # Typer has no public name for it.
    script = importlib.import_module("typer.completion").get_completion_script
    print(script(prog_name="fullpipe", complete_var=COMPLETE_VARIABLE, shell=shell.value))


def prepare() -> None:
    """Makes Typer answer a shell's question in the form that the printed scripts expect."""
    importlib.import_module("typer.completion").completion_init()
    # Our lines have no markup; to take it out Typer would load Rich, a third of an answer's time.
    classes = importlib.import_module("typer._completion_classes")
    vars(classes)["_sanitize_help_text"] = str


def engines(incomplete: str) -> list[str]:
    """Engines that begin so."""
    from fullpipe.engines.base import engine_names

    return [name for name in engine_names() if name.startswith(incomplete)]


def congestion_controls(incomplete: str) -> list[str]:
    """Congestion controls of the registry that begin so."""
    from fullpipe.congestion.registry import cc_sets

    return [name for name in cc_sets() if name.startswith(incomplete)]
