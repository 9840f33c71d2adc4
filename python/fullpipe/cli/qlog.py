"""`fullpipe qlog`: the flows of a recording as qlog."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.cli.output import message


def qlog(
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="The recording.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the files.")] = Path("qlog"),
    pcap: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The run's capture, for the events of packets."),
    ] = None,
) -> None:
    """Writes each flow of a recording as qlog, such as for qvis.

    Metrics and congestion states come from the samples. With the capture of the same run (`run
    --pcap`) packets sent, received, acknowledged and lost are there too."""
    from fullpipe.recording.recording import Recording
    from fullpipe.report.qlog import write_qlog

    files = write_qlog(Recording.open(recording), out, pcap)
    message(f"{len(files)} files in {out}")
