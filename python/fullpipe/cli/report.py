"""`fullpipe report`: recordings into a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.cli.output import messages
from fullpipe.recording import Recording, RecordingError
from fullpipe.report import write_figures, write_report


def report(
    folders: Annotated[list[Path], typer.Argument(help="recordings, or folders of recordings")],
    out: Annotated[Path, typer.Option(help="the page")] = Path("report.html"),
    figures: Annotated[Path | None, typer.Option(help="write figures into this folder")] = None,
    title: Annotated[str | None, typer.Option(help="heading of the page")] = None,
) -> None:
    """Writes one self-contained HTML page from recordings."""
    recordings = [recording for folder in folders for recording in open_all(folder)]
    messages.print(f"report: {write_report(recordings, out, title)}")
    if figures is not None:
        for path in write_figures(recordings, figures):
            messages.print(f"figure: {path}")


def open_all(folder: Path) -> list[Recording]:
    """The recording in this folder, or those one level below it.

    Raises RecordingError where there is none."""
    if (folder / "metadata.json").is_file() or not folder.is_dir():
        return [Recording.open(folder)]
    inner = sorted(path.parent for path in folder.glob("*/metadata.json"))
    if not inner:
        raise RecordingError(f"{folder}: no recording here nor one level below")
    return [Recording.open(path) for path in inner]
