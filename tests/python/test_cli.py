"""Help, completion and exit statuses of the command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import forks
from fullpipe.base import commit as commits
from fullpipe.cli.app import app

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; sys.argv[0] = 'fullpipe'; from fullpipe.cli import main; main()"


def fullpipe(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True, text=True, check=False, env={**os.environ, **variables},
    )  # fmt: skip


def help_of(*words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--help"], prog_name="fullpipe")
    assert done.exit_code == 0
    return done.output


def commands(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """Words that lead to this command and to every one below it."""
    yield words
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from commands(below, *words, name)


#: From the commands themselves: every worker collects this file, and their helps take seconds.
COMMANDS = list(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_a_command_fits_80_columns_and_cuts_nothing_off(words: tuple[str, ...]) -> None:
    text = help_of(*words)
    assert f"Usage: {' '.join(['fullpipe', *words])} " in text
    assert max(map(len, text.splitlines())) <= 80
    listed = text.partition("\nCommands:\n")[2]
    assert "..." not in listed
    below = {command[-1] for command in COMMANDS if command and command[:-1] == words}
    assert set(re.findall(r"^  (\S+)  ", listed, re.MULTILINE)) == below


def test_without_a_command_help_is_printed_and_the_status_is_2() -> None:
    for words in ((), ("cc",), ("sweep",)):
        done = CliRunner().invoke(app, words, prog_name="fullpipe")
        assert done.exit_code == 2
        assert f"Usage: {' '.join(['fullpipe', *words])} [" in done.output


@pytest.mark.parametrize("words", [(), ("run",), ("sweep", "run")], ids=" ".join)
def test_h_is_short_for_help(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words, "-h"], prog_name="fullpipe")
    assert (done.exit_code, done.output) == (0, help_of(*words))


def test_the_version_is_that_of_the_package() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version is not None
    package = version[1].replace("-dev", ".dev0")
    assert fullpipe("--version").stdout.startswith(f"fullpipe {package}")


def test_two_builds_of_a_version_in_development_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """PEP 440: a local version label follows a plus; letters, digits and periods make it."""
    first, second = "0123456789abcdef", "fedcba9876543210"
    named = []
    for commit in (first, f"{first}+changes", second, None):
        monkeypatch.setattr(commits, "git_commit", lambda commit=commit: commit)
        monkeypatch.setattr(commits, "__version__", "1.2.0.dev0")
        named.append(commits.build_version())
        monkeypatch.setattr(commits, "__version__", "1.2.0")
        assert commits.build_version() == "1.2.0"
    assert named == ["1.2.0.dev0+0123456789ab", "1.2.0.dev0+0123456789ab.changed",
                     "1.2.0.dev0+fedcba987654", "1.2.0.dev0"]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"], ["run"], ["run", "a.toml", "b.toml"], ["run", "a.toml", "--repeat", "0"],
        ["run", "a.toml", "--nonsense"], ["hunt", "bbr3", "--worst", "luck"],
        ["sweep", "cell", "a.toml", "-1"], ["compare", "reno", "--engine", "ns3"],
    ],
)  # fmt: skip
def test_a_wrong_command_line_ends_with_status_2_and_no_traceback(
    words: list[str], tmp_path: Path
) -> None:
    status, said = forks.command(words, tmp_path, os.environ)
    assert status == 2
    assert "Error: " in said and "Traceback" not in said


def test_a_sweep_without_a_command_is_run(tmp_path: Path) -> None:
    (done, said), ran = (
        forks.command(["sweep", *words, "missing.toml"], tmp_path, os.environ)
        for words in ([], ["run"])
    )
    assert done == 2 and "missing.toml" in said
    assert (done, said) == ran


@cache
def completion() -> tuple[str, str]:
    """A function of bash that runs the program, and what the program says completes its words."""
    function = f'fullpipe() {{ "{sys.executable}" -c "{PROGRAM}" "$@"; }}; export -f fullpipe'
    shown = subprocess.run(
        ["bash", "--norc", "-c", f"{function}\nfullpipe --show-completion; true"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return function, shown.stdout.replace("$1 )", "bash -c fullpipe )")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fullpipe ru", {"run"}),
        ("fullpipe run --eng", {"--engine"}),
        ("fullpipe run --engine ", {"sim", "vm", "live"}),
        ("fullpipe kernel loa", {"load"}),
        ("fullpipe compare bbr3-", {"bbr3-linux"}),
        ("fullpipe test rru", {"rrul"}),
    ],
)
def test_bash_gets_the_words_that_complete_a_line(line: str, words: set[str]) -> None:
    function, script = completion()
    typed = line.split(" ")
    completed = subprocess.run(
        ["bash", "--norc", "-c",
         f"{function}\n{script}\n"
         f"COMP_WORDS=({' '.join(repr(word) for word in typed)}); COMP_CWORD={len(typed) - 1}\n"
         '_fullpipe_completion fullpipe; printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert words <= set(completed.stdout.split()), completed


def test_zsh_and_fish_get_words_with_their_meaning() -> None:
    zsh = fullpipe(_FULLPIPE_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="fullpipe sch")
    assert '"schema":"Prints the JSON schema' in zsh.stdout
    fish = fullpipe(
        _FULLPIPE_COMPLETE="complete_fish", _TYPER_COMPLETE_ARGS="fullpipe sch",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )  # fmt: skip
    assert fish.stdout.startswith("schema\tPrints the JSON schema")
