"""`fullpipe serve`: a page for a store and a bench, on the loopback address."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import Annotated

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.options import ChosenSweep
from fullpipe.cli.output import message


def serve(
    store: Annotated[
        Path | None,
        typer.Argument(metavar="STORE", help="A store that a sweep fills; none: the bench only."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; 0 takes a free one.")] = 0,
    trust: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Code (.h, .py) that may run if the store's scenarios name it; repeatable.",
        ),
    ] = None,
    sweep: ChosenSweep = None,
) -> None:
    """Serves a page with a sweep as it fills, and a bench.

    The page is served to this machine alone, under a link with a token; Ctrl-C ends it. Needs
    fullpipe[serve]."""
    try:
        import uvicorn

        from fullpipe.serve.app import make_app
    except ModuleNotFoundError as error:
        raise UserError(f"serve: {error.name} is missing; pip install 'fullpipe[serve]'") from None
    for file in trust or []:
        if not file.is_file():
            raise UserError(f"--trust {file}: no such file")
    if store is not None:
        from fullpipe.sweep.listing import chosen
        from fullpipe.sweep.store import Store

        chosen(Store(store).listing(), sweep)
    with socket.socket() as listening:
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            raise UserError(f"--port {port}: cannot be used: {error.strerror}") from None
        listening.listen(64)
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        message(f"http://127.0.0.1:{port}/?token={token}")
        config = uvicorn.Config(
            make_app(store, token, hosts, trust or [], sweep),
            log_level="warning",
            lifespan="off",
            access_log=False,
        )
        uvicorn.Server(config).run(sockets=[listening])
