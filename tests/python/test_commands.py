"""The page of commands names what the command line has."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_commands_is_what_the_command_line_says() -> None:
    script = ROOT / "scripts" / "commands.py"
    spec = importlib.util.spec_from_file_location("commands", script)
    assert spec is not None and spec.loader is not None
    commands = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(commands)
    written = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert written == commands.page(), "python scripts/commands.py writes it anew"
