"""Writes the reference of `fullpipe.__all__` as HTML with pdoc: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

import pdoc

import fullpipe


def main(folder: Path) -> None:
    """Writes the pages into a folder."""
    for name in fullpipe.__all__:  # they are loaded on first use, which pdoc does not trigger
        setattr(fullpipe, name, getattr(fullpipe, name))
    pdoc.render.configure(docformat="markdown", show_source=False, search=False)
    pdoc.pdoc("fullpipe", "!fullpipe.cli", output_directory=folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
