"""`fullpipe qlog`: the flows of a recording as qlog."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.base.errors import UserError
from fullpipe.base.units import counted
from fullpipe.cli.output import message


def qlog(
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="The recording.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the files.")
    ] = Path("qlog"),
    pcap: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The run's capture, for the events of packets."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the files that --out has.")
    ] = False,
) -> None:
    """Writes each flow of a recording as qlog, such as for qvis.

    Metrics and congestion states come from the samples. With the capture of the same run (`run
    --pcap`) packets sent, received, acknowledged and lost are there too. Exit status: 0 done, 2 bad
    input, such as the capture of another run."""
    from fullpipe.recording.recording import Recording
    from fullpipe.report.qlog import write_qlog

    if out.exists() and not force:
        raise UserError(
            f"{out}: exists already; name another folder with --out, or replace its files with "
            "--force"
        )
    source = Recording.open(recording)
    if out.is_dir() and any(file.suffix != ".sqlog" for file in out.iterdir()):
        raise UserError(
            f"--force: {out} has other files than .sqlog; remove it yourself, or name another"
        )
    old = set(out.glob("*.sqlog"))
    files = write_qlog(source, out, pcap)
    for file in old.difference(files):
        file.unlink()
    message(f"{counted(len(files), 'file')} in {out}")
