"""`fullpipe agent`: this host as the far end of runs between two hosts."""

from __future__ import annotations

import ipaddress
import os
import secrets
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from fullpipe.base.errors import RunError, UserError
from fullpipe.cli.output import message

app = typer.Typer(
    help="Makes this host the far end of runs between two hosts.", no_args_is_help=True
)

#: Shorter ones can be guessed.
_TOKEN_CHARACTERS_MIN = 16


@app.command()
def serve(
    listen: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS[:PORT]", help="Address and port of this host to listen on."
        ),
    ],
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File whose first line is the token; else one is made."),
    ] = None,
) -> None:
    """Serves `fullpipe run --engine live --peer ADDRESS`.

    Only callers that know the token are served, until Ctrl-C. Uploads of the near end need no
    rights here; downloads with fullpipe's congestion controls load them here, which needs root.
    The token is generated and printed, or read from --token-file or FULLPIPE_TOKEN."""
    from fullpipe.engines import assets
    from fullpipe.engines.child import die_with_parent, stop

    address = _address(listen)
    made = token_file is None and not os.environ.get("FULLPIPE_TOKEN")
    token = secrets.token_hex(_TOKEN_CHARACTERS_MIN) if made else _token(token_file)
    if made:
        message(f"token: {token}")
    agent = subprocess.Popen(
        [str(assets.agent()), "serve", address, str(assets.objects_folder())],
        stdin=subprocess.PIPE,
        preexec_fn=die_with_parent,
        start_new_session=True,
    )
    try:
        assert agent.stdin is not None
        agent.stdin.write(f"{token}\n".encode())
        agent.stdin.close()
        status = agent.wait()
    except KeyboardInterrupt:
        return
    finally:
        stop(agent)
    if status:
        raise RunError("the agent ended; its message is above")


def _address(text: str) -> str:
    from fullpipe.engines.live import DEFAULT_PORT

    host, _, port = text.rpartition(":") if ":" in text else (text, "", str(DEFAULT_PORT))
    try:
        ipaddress.IPv4Address(host)
    except ValueError as error:
        raise UserError(
            f"{text}: must be an IPv4 address of this host, such as 192.0.2.7 or "
            f"192.0.2.7:{DEFAULT_PORT} (0.0.0.0 means every address)"
        ) from error
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError(f"{text}: the port must be 1 to 65535")
    return f"{host}:{port}"


def _token(file: Path | None) -> str:
    if file is None:
        source, text = "FULLPIPE_TOKEN", os.environ["FULLPIPE_TOKEN"]
    else:
        source = f"--token-file {file}"
        try:
            # The user's own, which may be a pipe: --token-file <(pass show fullpipe).
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"{source}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UserError(f"{source}: {error}") from error
    token = text.strip().splitlines()[0].strip() if text.strip() else ""
    if len(token) < _TOKEN_CHARACTERS_MIN:
        raise UserError(f"{source}: a token has at least {_TOKEN_CHARACTERS_MIN} characters")
    return token
