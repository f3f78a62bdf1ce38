"""The board in a browser: textual-serve behind a check of who asks.

A request needs the token of the address, and our own Host and Origin. Browsers send the cookie to
every port of this machine, so a screen also needs a key, which only pages of this very port can
read. docs/security.md; ADR 0031.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import shlex
import socket
from collections.abc import Awaitable, Callable
from html import escape
from string import Template

from aiohttp import web
from textual_serve.server import Server

from queenbee.core.command_lines import CommandLine

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_HOST = "127.0.0.1"
_TOKEN_BYTES = 32
_MOST_SCREENS = 8
"""Each browser window is a process of its own, with 60 MB."""
_SILENT_S = 5.0
"""How long a connection may stay open without a request."""
_PATIENCE_S = 1.0
"""How long an end waits for the windows that are open."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "font-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_SCREEN = "/ws/"
_HERE = os.path.dirname(__file__)


class Gate:
    """Who may come in: requests to this port of this machine, from its own page, with the token."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._hosts = {f"{_HOST}:{port}", f"localhost:{port}"}
        self._cookie = f"queen-watch-{port}"
        """Cookies know no ports: two screens must not take each other's."""
        # Neither follows from the other: a cookie that another port got opens no screen.
        self._ticket = secrets.token_urlsafe(_TOKEN_BYTES)
        self._key = secrets.token_urlsafe(_TOKEN_BYTES)

    @property
    def address(self) -> str:
        """The address to open."""
        return f"http://{_HOST}:{self._port}/?token={self._token}"

    def refusal(self, request: web.Request) -> str | None:
        """Returns why a request is refused, or None."""
        if request.host not in self._hosts:
            return "this address is not the one that queen watch printed"
        origin = request.headers.get("Origin")
        is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
        # A page of another site cannot leave its origin out of either.
        if origin != f"http://{request.host}" and (origin is not None or is_socket):
            return "another page asked for this"
        has_ticket = _same(request.cookies.get(self._cookie), self._ticket)
        if not has_ticket and not self._entering(request):
            return "the token is missing: open the whole address that queen watch printed"
        if request.path.startswith(_SCREEN) and not _same(
            request.path.removeprefix(_SCREEN), self._key
        ):
            return "the key is missing: open the whole address that queen watch printed"
        return None

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Lets a request through, or refuses it; turns the token of the address into a cookie and a
        key, so that it is in no history and no screenshot.
        """
        refusal = self.refusal(request)
        if refusal is not None:
            refused = web.Response(status=403, text=f"queen watch: {refusal}\n")
            refused.force_close()
            return refused
        if request.path == "/" and "token" in request.query:
            if not self._entering(request):
                return web.Response(status=403, text="queen watch: this is another token\n")
            entered = web.Response(status=303, headers={"Location": f"/#{self._key}"})
            entered.set_cookie(
                self._cookie, self._ticket, path="/", httponly=True, samesite="Strict"
            )
            return entered
        return await handler(request)

    def _entering(self, request: web.Request) -> bool:
        return request.path == "/" and _same(request.query.get("token"), self._token)


def _same(given: str | None, ours: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(errors="replace"), ours.encode())


def serve(command: CommandLine, title: str, port: int, ready: Callable[[str], object]) -> None:
    """Serves a screen to browsers of this machine until it is interrupted.

    `command` starts the screen, once for each window. `port` 0 is any that is free. `ready` gets
    the address. Raises `OSError` if the port is taken.
    """
    # Whatever others send would fill the terminal with tracebacks.
    logging.disable()
    # The socket first: the port is known before anything is said about it.
    with socket.create_server((_HOST, port)) as listening:
        gate = Gate(listening.getsockname()[1], secrets.token_urlsafe(_TOKEN_BYTES))
        app = application(command, title, gate)

        async def started(_: web.Application) -> None:
            ready(gate.address)

        app.on_startup.append(started)
        web.run_app(
            app,
            sock=listening,
            print=None,
            access_log=None,
            shutdown_timeout=_PATIENCE_S,
            # Also for a connection that never ends its header: others could not connect any more.
            keepalive_timeout=_SILENT_S,
        )


def _screens(command: CommandLine, title: str, theme: str) -> Server:
    # It gives the line to a shell, which must not stay between us and the screen.
    return Server(f"exec env TEXTUAL_THEME=textual-{theme} {shlex.join(command)}", title=title)


def application(command: CommandLine, title: str, gate: Gate) -> web.Application:
    """Returns the server of a screen behind a gate."""
    served = {theme: _screens(command, title, theme) for theme in ("dark", "light")}
    with open(os.path.join(_HERE, "page.html"), encoding="utf-8") as file:
        template = Template(file.read())
    open_now = 0

    async def index(request: web.Request) -> web.Response:
        page = template.substitute(title=escape(title), socket=escape(f"ws://{request.host}/ws"))
        return web.Response(text=page, content_type="text/html")

    async def script(_: web.Request) -> web.StreamResponse:
        return web.FileResponse(os.path.join(_HERE, "page.js"))

    async def screen(request: web.Request) -> web.StreamResponse:
        nonlocal open_now
        if open_now >= _MOST_SCREENS:
            return web.Response(status=503, text="queen watch: too many windows are open\n")
        open_now += 1
        try:
            is_light = request.cookies.get("queen-watch-theme") == "light"
            return await served["light" if is_light else "dark"].handle_websocket(request)
        finally:
            open_now -= 1

    async def protect(_: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(_HEADERS)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await gate(request, handler)

    app = web.Application(middlewares=[guard])
    app.on_response_prepare.append(protect)
    app.router.add_get("/", index)
    app.router.add_get("/page.js", script)
    app.router.add_get(f"{_SCREEN}{{key}}", screen)
    app.router.add_static("/static", served["dark"].statics_path)
    return app
