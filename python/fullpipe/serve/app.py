"""The server: authentication, routes and responses.

Loopback only; a token in the link becomes a cookie; other Host headers are refused (DNS rebinding),
and so are requests of other pages (Origin).
The content security policy allows only this server's own files.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio

# Plotly and Arrow import pandas at first use, and fail if another thread has half imported it.
import pandas  # noqa: F401
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from fullpipe.base.errors import RunError, UserError
from fullpipe.congestion.registry import cc_sets
from fullpipe.plots.plotly_renderer import as_json
from fullpipe.plots.plotly_script import script
from fullpipe.serve import bench, cells
from fullpipe.serve.shared import Shared

COOKIE = "fullpipe"
_MAX_BODY_BYTES = 1 << 16
#: Runs at once; further requests wait, so that the machine keeps free cores.
_RUNS_AT_ONCE = 2
_EVENT_S = 1.0
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; frame-ancestors 'none'"
)
#: The page's files -> the package that has each, and its type.
_FILES = {
    "page.css": ("fullpipe.serve", "text/css"),
    "page.js": ("fullpipe.serve", "text/javascript"),
    "colours.css": ("fullpipe.plots", "text/css"),
    "chart.js": ("fullpipe.plots", "text/javascript"),
}


def make_app(
    folder: Path | None,
    token: str,
    hosts: frozenset[str],
    trusted: Sequence[Path] = (),
    shown: str | None = None,
) -> Starlette:
    """The application. `folder`: the store that it shows; None for the bench alone. `hosts`: the
    allowed Host headers. `trusted`: files whose code may run if the store's scenarios name them.
    `shown`: the sweep (`listing.chosen`)."""
    limiter = anyio.Semaphore(_RUNS_AT_ONCE)
    shared = None if folder is None else Shared(folder, shown)

    async def index(_request: Request) -> Response:
        text = files("fullpipe.serve").joinpath("page.html").read_text(encoding="utf-8")
        return Response(text, media_type="text/html")

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name == "plotly.js":
            return Response(
                _plotly(),
                media_type="text/javascript",
                headers={"Cache-Control": "max-age=86400, private"},
            )
        if name not in _FILES:
            return PlainTextResponse("no such file", 404)
        package, kind = _FILES[name]
        text = files(package).joinpath(name).read_text(encoding="utf-8")
        return Response(text, media_type=kind)

    async def about(_request: Request) -> Response:
        def offered() -> str:
            facts = {
                "ccs": list(cc_sets()),
                "qdiscs": list(bench.QDISCS),
                "max_flows": bench.MAX_FLOWS,
                "sweep": folder is not None,
            }
            return as_json(facts)

        return await _answer(offered)

    async def sweep(_request: Request) -> Response:
        return await _answer(lambda: _shared_answer(shared, "state"))

    async def chart(request: Request) -> Response:
        return await _answer(lambda: _shared_answer(shared, "chart", dict(request.query_params)))

    async def one_cell(request: Request) -> Response:
        return await _answer(
            lambda: _shared_answer(shared, "cell", dict(request.query_params), trusted)
        )

    async def run(request: Request) -> Response:
        body = await _body(request)
        async with limiter:
            return await _answer(lambda: as_json(_drawn(body, shared, trusted)))

    async def events(request: Request) -> Response:
        async def stream() -> AsyncIterator[str]:
            before = None
            while not await request.is_disconnected():
                now = await anyio.to_thread.run_sync(_state_or_error, shared)
                if now != before:
                    yield f"data: {now}\n\n"
                    before = now
                await asyncio.sleep(_EVENT_S)

        return StreamingResponse(stream(), media_type="text/event-stream")

    guard = functools.partial(_guard, token, hosts)
    return Starlette(
        routes=[
            Route("/", index),
            Route("/files/{name}", static),
            Route("/api/about", about),
            Route("/api/sweep", sweep),
            Route("/api/chart", chart),
            Route("/api/cell", one_cell),
            Route("/api/run", run, methods=["POST"]),
            Route("/events", events),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
    )


async def _guard(
    token: str,
    hosts: frozenset[str],
    request: Request,
    go_on: Callable[[Request], Awaitable[Response]],
) -> Response:
    if request.headers.get("host", "") not in hosts:
        return PlainTextResponse("this page answers to its own address alone", 421)
    # Browsers send Origin with every POST; pages of other ports of this host get the cookie too.
    origin = request.headers.get("origin")
    if origin is not None and origin not in {f"http://{host}" for host in hosts}:
        return PlainTextResponse("this page answers to itself alone, not to another page", 403)
    sent_token = request.query_params.get("token")
    if request.url.path == "/" and sent_token is not None:
        if not hmac.compare_digest(sent_token.encode(), token.encode()):
            return PlainTextResponse("wrong token; use the link that fullpipe serve printed", 403)
        answer: Response = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        return answer
    if not hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), token.encode()):
        return PlainTextResponse("no token; use the link that fullpipe serve printed", 403)
    answer = await go_on(request)
    answer.headers["Content-Security-Policy"] = _POLICY
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Referrer-Policy"] = "no-referrer"
    return answer


async def _answer(work: Callable[[], str]) -> Response:
    """A function's result as JSON; a UserError becomes status 400 with its message."""
    try:
        text = await anyio.to_thread.run_sync(work)
    except (UserError, RunError) as error:
        return Response(json.dumps({"error": str(error)}), 400, media_type="application/json")
    return Response(text, media_type="application/json")


async def _body(request: Request) -> Any:
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > _MAX_BODY_BYTES:
            return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _drawn(body: Any, shared: Shared | None, trusted: Sequence[Path]) -> dict[str, Any]:
    """A run of the bench (`bench`: the sliders' values) or of a cell of the store (`cell`)."""
    if not isinstance(body, dict) or len(body) != 1:
        raise UserError('the body must be {"bench": {...}} or {"cell": {...}}, 64 KiB at most')
    if "bench" in body:
        document = bench.read_bench(body["bench"]).document
    elif isinstance(body.get("cell"), dict):
        store = _store(shared)
        cell = cells.cell(store.folder, body["cell"], trusted, store.sweep)
        if cell["document"] is None:
            raise UserError(cell["refused"])
        document = cell["document"]
    else:
        raise UserError('the body must be {"bench": {...}} or {"cell": {...}}')
    drawn = bench.draw(document, trusted)
    return {
        "toml": drawn.toml,
        "sliders": drawn.sliders,
        "figures": drawn.figures,
        "summary": drawn.summary,
    }


def _store(shared: Shared | None) -> Shared:
    if shared is None:
        raise UserError("no store is served; fullpipe serve DIR shows one")
    return shared


def _shared_answer(
    shared: Shared | None,
    kind: str,
    wanted: dict[str, str] | None = None,
    trusted: Sequence[Path] = (),
) -> str:
    """The shared answer to this question about the store."""
    store = _store(shared)
    folder, sweep = store.folder, store.sweep
    if wanted is None:
        return store.answer(kind, lambda: cells.state(folder, sweep))
    question = (kind, *sorted(wanted.items()))
    if kind == "chart":
        return store.answer(question, lambda: cells.chart(folder, wanted, sweep))
    return store.answer(question, lambda: cells.cell(folder, wanted, trusted, sweep))


def _state_or_error(shared: Shared | None) -> str:
    try:
        return _shared_answer(shared, "state")
    except UserError as error:
        return json.dumps({"error": str(error)})


@functools.cache
def _plotly() -> str:
    return script()
