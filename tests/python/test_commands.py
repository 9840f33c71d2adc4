"""Generated pages are up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from fullpipe.cli.app import app
from repository_scripts import script

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["commands", "metric_functions", "metrics", "recordings"])
def test_a_generated_page_is_what_its_script_writes(name: str) -> None:
    written = (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
    assert written == script(name).page(), f"python scripts/{name}.py writes it anew"


def test_every_command_has_a_manual_page_with_its_options() -> None:
    pages = script("man_pages").pages()
    command = typer.main.get_command(app).commands["run"]
    options = {way for one in command.params if not one.hidden for way in one.opts
               if one.param_type_name == "option"}  # fmt: skip
    assert {
        re.sub(r"[\\]", "", way) for way in re.findall(r"\\fB(.*?)\\fR", pages["fullpipe-run"])
    } >= options
    listed = re.findall(r"^\| `(fullpipe[a-z -]*[a-z])", script("commands").page(), re.MULTILINE)
    assert {words.strip().replace(" ", "-") for words in listed} <= set(pages)
    assert all("\n.\\" not in text and "\n'" not in text for text in pages.values())
