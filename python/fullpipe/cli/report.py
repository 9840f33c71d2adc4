"""`fullpipe report`: recordings into a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.base.errors import UserError
from fullpipe.base.units import counted
from fullpipe.cli.options import (
    DEFAULT_LOOK,
    Figures,
    Light,
    LookOptions,
    with_groups,
)
from fullpipe.cli.output import message, warn, write_figures

if TYPE_CHECKING:
    from fullpipe.recording.recording import Recording


@with_groups
def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="RECORDING", help="Recordings, or folders that hold some."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page.")] = Path(
        "report.html"
    ),
    figures: Figures = None,
    looks: LookOptions = DEFAULT_LOOK,
    light: Light = False,
    pages: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a page per scenario into this folder instead."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
) -> None:
    """Writes recordings as an HTML page.

    The page needs no other file. Runs of the same scenario on the same engine are repetitions of
    each other."""
    from fullpipe.base.writing import check_folder
    from fullpipe.report.page import write_pages, write_report

    if out.is_dir():
        raise UserError(f"--out {out}: is a folder; name a file, such as {out / 'report.html'}")
    check_folder("--figures", figures)
    look = looks.look_of(figures)
    recordings = [recording for folder in folders for recording in open_all(folder)]
    if pages is not None:
        page = write_pages(recordings, pages, title, light)
    else:
        page = write_report(recordings, out, title, light)
    for recording in recordings:
        warn(str(recording.path), recording.warnings)
    message(f"report: {page} ({counted(len(recordings), 'run')})")
    write_figures(recordings, figures, look)


def open_all(folder: Path) -> list[Recording]:
    """The recording in this folder, or all below it.

    Raises RecordingError where there is none."""
    from fullpipe.recording.recording import Recording, RecordingError
    from fullpipe.recording.replacing import restore

    if not folder.exists():
        restore(folder)
    if (folder / "metadata.json").is_file() or not folder.is_dir():
        return [Recording.open(folder)]
    inner = sorted(path.parent for path in folder.rglob("metadata.json"))
    if not inner:
        raise RecordingError(f"{folder}: no recording here nor below")
    return [Recording.open(path) for path in inner]
