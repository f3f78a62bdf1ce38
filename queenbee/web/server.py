"""The server of the page: its files, its events, and what its buttons do."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from html import escape
from string import Template

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from queenbee import report
from queenbee.core.names import PERSON
from queenbee.core.text import printable
from queenbee.errors import InvalidInput, QueenError
from queenbee.library.hive import Hive
from queenbee.store.droids.agent_callers import is_by_agent
from queenbee.watch.acts import do
from queenbee.web.gate import EVENTS, Gate, Gated
from queenbee.web.live import Live

_LOOPBACK, _ANY = "127.0.0.1", ("0.0.0.0", "::")  # noqa: S104 - refused
_ONE_HOST = "queen watch --web --host ADDRESS, such as that of a private network"
_STATUS = "queen status"
_HERE = os.path.dirname(__file__)
_REPORT = os.path.dirname(report.__file__)
_FILES = {
    "page.js": ("text/javascript", (_HERE, "page.js")),
    "page.css": ("text/css", (_HERE, "page.css")),
    "report.css": ("text/css", (_REPORT, "page.css")),
}
_MOST_BYTES = 100_000
"""Of what a button sends."""
_MOST_CONNECTIONS = 64
_SILENT_S = 5.0
"""How long a connection may stay open without a request."""
_PATIENCE_S = 1
"""How long an end waits for the pages that are open."""


class _Impatient(H11Protocol):
    """Closes a connection that sends no whole request: others could not connect any more."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(_SILENT_S, self._end_if_silent)

    def _end_if_silent(self) -> None:
        if not self.cycle:
            self.transport.close()


def hive_of_person(droid: str | None, beads_dir: str | None) -> Hive:
    """Returns an open hive in which the page acts: under the name that is set, or as `human`.
    Raises `InvalidInput` for an agent, which is no person.
    """
    hive = Hive.open(droid=droid, beads_dir=beads_dir)
    if is_by_agent(hive.layout):
        raise InvalidInput("queen watch --web acts for a person, not for an agent", hint=_STATUS)
    if hive.actor_or_none is None:
        hive = Hive.open(droid=PERSON, beads_dir=beads_dir)
    return hive


def serve(
    hive: Hive, ready: Callable[[str], object], *, port: int = 0, host: str | None = None
) -> None:
    """Serves the page of a hive until it is interrupted, to whoever opens the address, which
    `ready` gets: on this machine alone, or at the address `host` of it. Port 0 is any that is free.
    Raises `OSError` if it is taken, and `InvalidInput` if `host` is no single address.
    """
    host = host or _LOOPBACK
    if host in _ANY:
        raise InvalidInput(f"{host} is no address that a browser can open", hint=_ONE_HOST)
    # Whatever others send would fill the terminal with complaints.
    logging.disable()
    # The socket first: the port is known before anything is said about it.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        gate = Gate(host, listening.getsockname()[1])
        server = Server(
            Config(
                Gated(application(hive), gate),
                http=_Impatient,
                ws="none",
                access_log=False,
                log_config=None,
                server_header=False,
                limit_concurrency=_MOST_CONNECTIONS,
                timeout_graceful_shutdown=_PATIENCE_S,
            )
        )
        ready(gate.address)
        with suppress(KeyboardInterrupt):
            server.run([listening])


def application(hive: Hive) -> Starlette:
    """Returns what is served of a hive."""
    live: Live

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        nonlocal live
        live = Live(hive)
        live.start()
        yield
        live.end()

    async def events(_: Request) -> Response:
        return StreamingResponse(live.events(), media_type="text/event-stream")

    async def act(request: Request) -> Response:
        try:
            asked = json.loads(await _body(request))
            name, about, text = (str(asked.get(each, "")) for each in ("act", "about", "text"))
        except (ValueError, AttributeError, RecursionError):
            return JSONResponse({"message": "this is no request of the page"}, 400)
        try:
            done = await asyncio.to_thread(do, hive, name, about, text)
        except QueenError as error:
            said = {"code": error.code, "message": error.message, "hint": error.hint}
            return JSONResponse(said, 409)
        return JSONResponse({"done": printable(done)})

    page = _page(os.path.basename(hive.layout.root), hive.actor)
    routes = [
        Route("/", lambda _: Response(page, media_type="text/html")),
        Route(f"{EVENTS}{{key}}", events),
        Route("/act", act, methods=["POST"]),
        *(Route(f"/{name}", _file(kind, *path)) for name, (kind, path) in _FILES.items()),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def _page(name: str, actor: str) -> str:
    with open(os.path.join(_HERE, "page.html"), encoding="utf-8") as file:
        template = Template(file.read())
    return template.substitute(name=escape(printable(name)), actor=escape(actor))


def _file(kind: str, *path: str) -> Callable[[Request], Response]:
    with open(os.path.join(*path), encoding="utf-8") as file:
        text = file.read()
    return lambda _: Response(text, media_type=kind)


async def _body(request: Request) -> bytes:
    """Returns what was sent. Raises `ValueError` if it is too much."""
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > _MOST_BYTES:
            raise ValueError("too much")
    return found
