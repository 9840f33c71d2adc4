"""`fullpipe report`: recordings into a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fullpipe.base.errors import UserError
from fullpipe.base.writing import check_folder
from fullpipe.cli.saying import say, warn

if TYPE_CHECKING:
    import typer

    from fullpipe.recording.recording import Recording
else:
    from fullpipe.cli.later import typer


def report(
    folders: Annotated[list[Path], typer.Argument(help="recordings, or folders of recordings")],
    out: Annotated[Path, typer.Option(help="the page")] = Path("report.html"),
    figures: Annotated[Path | None, typer.Option(help="write figures into this folder")] = None,
    light: Annotated[bool, typer.Option(help="static plots, a small page")] = False,
    pages: Annotated[
        Path | None,
        typer.Option(help="folder for a page of each scenario instead, with one plotting library"),
    ] = None,
    title: Annotated[str | None, typer.Option(help="heading of the page")] = None,
) -> None:
    """Writes one self-contained HTML page from recordings, or a folder of pages.

    Runs of the same scenario and engine count as repetitions of each other."""
    # Libraries of plots take seconds to load: only when they are needed.
    from fullpipe.report import write_figures, write_pages, write_report

    if out.is_dir():
        raise UserError(f"--out {out}: is a folder; name a file, such as {out / 'report.html'}")
    check_folder("--figures", figures)
    recordings = [recording for folder in folders for recording in open_all(folder)]
    if pages is not None:
        page = write_pages(recordings, pages, title, light)
    else:
        page = write_report(recordings, out, title, light)
    for recording in recordings:
        warn(str(recording.path), recording.warnings)
    say(f"report: {page} ({len(recordings)} run{'s' if len(recordings) > 1 else ''})")
    if figures is not None:
        for path in write_figures(recordings, figures):
            say(f"figure: {path}")


def open_all(folder: Path) -> list[Recording]:
    """The recording in this folder, or all below it.

    Raises RecordingError where there is none."""
    from fullpipe.recording.recording import Recording, RecordingError

    if (folder / "metadata.json").is_file() or not folder.is_dir():
        return [Recording.open(folder)]
    inner = sorted(path.parent for path in folder.rglob("metadata.json"))
    if not inner:
        raise RecordingError(f"{folder}: no recording here nor below")
    return [Recording.open(path) for path in inner]
