"""How the program starts: what help and completion load, what bare words and shells get."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer._click.shell_completion import get_completion_class as completing

from fullpipe.cli import COMPLETE_VARIABLE, answering, table, whole
from fullpipe.cli.completion import prepare
from fullpipe.cli.declared import declared
from sweep_files import filled, sweep

PROGRAM = "import sys; sys.argv[0] = 'fullpipe'; from fullpipe.cli import main; main()"
ROOT = Path(__file__).parents[2]
#: Each takes a tenth of a second to seconds of CPU time to load.
HEAVY = {
    "numpy", "pandas", "pyarrow", "polars", "duckdb", "scipy", "statsmodels", "matplotlib",
    "plotly", "jinja2", "ray",
}  # fmt: skip
SCENARIO = """
duration = "2s"
[path]
rate = "10mbit"
rtt = "20ms"
buffer = "1bdp"
[[flow]]
cc = "bbr3"
"""


def fullpipe(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, with what it loads on stderr."""
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-c", PROGRAM, *words],
        capture_output=True, text=True, check=False, env={**os.environ, **variables},
    )  # fmt: skip


def loaded(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Top-level packages that a process of `fullpipe` loaded."""
    return {
        name.split(".")[0]
        for name in re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE)
    }


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Its own words on stderr."""
    return "".join(
        line for line in done.stderr.splitlines(True) if not line.startswith("import time:")
    )


def test_the_overview_loads_neither_libraries_nor_the_screens() -> None:
    done = fullpipe("--help")
    assert done.returncode == 0
    assert loaded(done) & (HEAVY | {"rich"}) == set()
    for name in (*whole.COMMANDS, *whole.GROUPS):
        assert re.search(rf"^  {name} +\S", done.stdout, re.MULTILINE)


def test_a_plain_sweep_loads_neither_what_explains_nor_what_reads_tables(
    tmp_path: Path,
) -> None:
    sweep = SCENARIO.replace("[path]", "[scenario.path]").replace("[[flow]]", "[[scenario.flow]]")
    sweep = sweep.replace("20ms", "{rtt}") + '[axis]\nrtt = ["20ms", "30ms"]\n'
    (tmp_path / "sweep.toml").write_text(f"[scenario]{sweep}")
    done = fullpipe("sweep", str(tmp_path / "sweep.toml"), "--out", str(tmp_path / "store"))
    assert done.returncode == 0, said(done)
    assert loaded(done) & (HEAVY | {"typer", "rich", "ssl"}) == set()


# What works on stores and the catalogue still loads what it runs with.
@pytest.mark.parametrize(
    "name",
    sorted(
        {*whole.COMMANDS, *whole.GROUPS}
        - {"choose", "effects", "experiment", "plot", "query", "sweep"}
    ),
)
def test_the_help_of_a_command_loads_no_library(name: str) -> None:
    done = fullpipe(name, "--help")
    assert done.returncode == 0 and f"Usage: fullpipe {name}" in done.stdout
    assert loaded(done) & HEAVY == set()


def test_a_run_loads_only_what_it_needs(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    done = fullpipe("run", str(file), "--no-report", "--out", str(tmp_path / "bare"))
    assert done.returncode == 0
    assert loaded(done) & (HEAVY | {"typer", "rich"}) == {"numpy", "pyarrow"}
    done = fullpipe("run", str(file), "--out", str(tmp_path / "page"))
    assert done.returncode == 0 and (tmp_path / "page" / "report.html").is_file()
    assert loaded(done) & {"scipy", "statsmodels", "matplotlib", "pandas"} == set()


def test_without_a_command_help_is_printed_as_it_is() -> None:
    for words in ((), ("cc",)):
        done = fullpipe(*words)
        assert done.returncode == 2
        assert said(done).startswith(f"Usage: fullpipe{''.join(f' {word}' for word in words)} [")
        assert "--help)" not in said(done)


def test_the_version_is_that_of_the_package() -> None:
    manifest = (ROOT / "Cargo.toml").read_text()
    version = re.search(r'^version = "(.*)"', manifest, re.MULTILINE)
    assert version is not None
    assert fullpipe("--version").stdout == f"fullpipe {version[1]}\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fullpipe ru", {"run"}),
        ("fullpipe run --eng", {"--engine"}),
        ("fullpipe run --engine ", {"sim", "vm", "live"}),
        ("fullpipe kernel loa", {"load"}),
        ("fullpipe compare bbr3-", {"bbr3-linux"}),
    ],
)
def test_bash_gets_the_words_that_complete_a_line(line: str, words: set[str]) -> None:
    script = fullpipe("completion", "bash").stdout
    typed = line.split(" ")
    asked = subprocess.run(
        ["bash", "--norc", "-c",
         f'fullpipe() {{ "{sys.executable}" -c "{PROGRAM}" "$@"; }}; export -f fullpipe\n'
         f"{script.replace('$1 )', 'bash -c fullpipe )')}\n"
         f"COMP_WORDS=({' '.join(repr(word) for word in typed)}); COMP_CWORD={len(typed) - 1}\n"
         '_fullpipe_completion fullpipe; printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert words <= set(asked.stdout.split()), asked


def test_zsh_and_fish_get_words_with_what_they_mean() -> None:
    zsh = fullpipe(_FULLPIPE_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="fullpipe sch")
    assert '"schema":"Prints the JSON schema' in zsh.stdout
    fish = fullpipe(
        _FULLPIPE_COMPLETE="complete_fish", _TYPER_COMPLETE_ARGS="fullpipe sch",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )  # fmt: skip
    assert fish.stdout.startswith("schema\tPrints the JSON schema")
    assert loaded(zsh) & (HEAVY | {"typer", "pydantic", "rich"}) == set()
    assert loaded(fish) & (HEAVY | {"typer", "pydantic", "rich"}) == set()
    for shell in ("zsh", "fish"):
        script = fullpipe("completion", shell).stdout
        assert f"_FULLPIPE_COMPLETE=complete_{shell}" in script


def test_the_table_of_commands_says_what_they_declare() -> None:
    """Where this fails: python -m fullpipe.cli.declared"""
    assert table.table() == declared()


def groups() -> list[tuple[str, ...]]:
    """Words that lead to every command."""
    found: list[tuple[str, ...]] = [(), *((name,) for name in whole.COMMANDS)]
    for name in whole.GROUPS:
        found += [(name,), *((name, one) for one in table.table()["commands"][name]["commands"])]
    return found


@pytest.mark.parametrize("form", ["complete_zsh", "complete_fish", "complete_bash"])
def test_shells_are_told_what_typer_would_tell_them(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare()
    endings = ["", "-", "--", "--o", "zzz", "x ", "x --", "--out ", "--out x --", "--out=", "bbr"]
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    for words in groups() if form == "complete_zsh" else [(), ("run",), ("cc",), ("cc", "show")]:
        program = typer.main.get_command(whole.app(next(iter(words), None)))
        ask = completing(form.removeprefix("complete_"))(program, {}, "fullpipe", COMPLETE_VARIABLE)
        for ending in endings if words else endings[:5]:
            line = " ".join(["fullpipe", *words, ending])
            monkeypatch.setenv(COMPLETE_VARIABLE, form)
            monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
            monkeypatch.setenv("COMP_WORDS", line)
            monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
            answered = answering.answer(os.environ, COMPLETE_VARIABLE)
            assert answered == (ask.complete(), 0), line


@pytest.mark.parametrize(
    "words",
    [
        "run s.toml",
        "run s.toml --engine vm --repeat 3 --out x --set a=1 --set=b=2 --json",
        "run --no-report --report --light s.toml --jobs 2 --kernel k --peer h:1",
        "compare bbr3 cubic --rate 10mbit --rtt 20ms",
        "report a b c --out page.html",
        "doctor --for sim",
        "schema --markdown",
        "schema",
    ],
)
def test_a_command_gets_the_same_from_the_table_as_from_typer(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FULLPIPE_TOKEN", "secret")
    name, *rest = words.split()
    home, _, function = whole.COMMANDS[name][0].partition(":")
    command = getattr(importlib.import_module(f"fullpipe.cli.{home}"), function)
    call = table.called([name, *rest])
    assert call is not None
    seen: list[dict[str, object]] = []
    recorder = functools.wraps(command)(lambda **given: seen.append(given))
    monkeypatch.setattr(f"fullpipe.cli.{home}.{function}", recorder)
    whole.app(name)([name, *rest], standalone_mode=False)
    bound = inspect.signature(command).bind(**call.keywords)  # type: ignore[attr-defined]
    bound.apply_defaults()
    assert [bound.arguments] == seen


@pytest.mark.parametrize(
    "words",
    [
        "sweep a.toml", "sweep cell a.toml 12 --seed 5 --set b=c", "sweep merge all one two",
        "sweep run a.toml --jobs 2 --dry-run --set b=1 --set c=2 --shard 1/3 --on ray --out d",
    ],
)  # fmt: skip
def test_a_command_of_a_group_gets_the_same_from_the_table_as_from_typer(words: str) -> None:
    call = table.called(words.split())
    assert call is not None
    seen: list[dict[str, object]] = []
    top: Any = typer.main.get_command(whole.app("sweep"))
    for name, command in top.commands["sweep"].commands.items():
        command.callback = lambda _name=name, **given: seen.append({"command": _name, **given})
    top(words.split(), standalone_mode=False)
    bound = inspect.signature(call.func).bind(**call.keywords)  # type: ignore[attr-defined]
    bound.apply_defaults()
    (found,) = seen
    several = {key: [*one] or None for key, one in found.items() if isinstance(one, tuple)}
    name = call.func.__name__  # type: ignore[attr-defined]
    assert {"command": name, **bound.arguments} == {**found, **several}


@pytest.mark.parametrize(
    "words",
    [
        "run", "run --help", "run a.toml b.toml", "run a.toml --repeat 0", "run a.toml --repeat x",
        "run a.toml --out", "run a.toml --nonsense", "run a.toml --json=1", "run -- a.toml",
        "run a.toml --engine -x", "nonsense", "--version", "cc list", "sweep",
        "sweep --help", "sweep run", "sweep cell a.toml -1", "", "run a.toml -j 2",
        "completion bash",
    ],
)  # fmt: skip
def test_what_is_not_plainly_right_is_left_to_typer(words: str) -> None:
    assert table.called(words.split()) is None


def test_a_query_of_a_store_says_its_answer_and_nothing_else(tmp_path: Path) -> None:
    filled(tmp_path / "store", sweep())
    done = fullpipe("query", str(tmp_path / "store"), "select count(*) as n from runs")
    assert (done.returncode, said(done)) == (0, "")
    assert "12" in done.stdout
