"""Imports the library modules that fullpipe uses, so that Python compiles them (`make build`).

pip would compile all 12,000 files of the libraries; a run, its page and its figures load a sixth.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import tomli_w

import fullpipe
from fullpipe.engines.runner import run_scenario
from fullpipe.report.figures import write_figures
from fullpipe.report.page import write_report
from fullpipe.scenario.model import make_scenario

DOCUMENT = {
    "name": "first",
    "duration": "3s",
    "path": {"rate": "10mbit", "rtt": "20ms"},
    "flow": [{"cc": "bbr3"}, {"cc": "cubic"}],
    "probe": [{"kind": "ping"}],
}


def imported(file: Path) -> Iterator[str]:
    """The modules that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def main() -> None:
    """Imports what any file of the package imports, and what drawing a report loads besides."""
    files = Path(fullpipe.__file__).parent.rglob("*.py")
    for name in sorted({name for file in files for name in imported(file)}):
        with suppress(ImportError):  # what is optional
            importlib.import_module(name)
    with TemporaryDirectory() as folder:
        recordings = run_scenario(
            make_scenario(DOCUMENT), tomli_w.dumps(DOCUMENT), [Path(folder) / "run"]
        ).recordings
        write_report(recordings, Path(folder) / "report.html")
        write_figures(recordings, Path(folder) / "figures")


if __name__ == "__main__":
    main()
