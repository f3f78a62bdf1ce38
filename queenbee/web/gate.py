"""Who may come in: requests from the page of this very port, in a browser that had the token.

The token of the address becomes a cookie, which no script reads, and a key. Browsers send the
cookie to every port of a machine, so what is in the hive also needs the key, which only pages of
this port can read. docs/security.md; ADR 0031.
"""

from __future__ import annotations

import hmac
import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TOKEN_BYTES = 32
KEY = "x-queen-key"
"""The header of a request with the key; an event stream, which can have none, has it as a path."""
EVENTS = "/events/"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",  # Whoever never ends a second request would keep it open.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Gate:
    """The tokens of one port, and what they open."""

    def __init__(self, host: str, port: int, token: str | None = None) -> None:
        self._token = token or secrets.token_urlsafe(_TOKEN_BYTES)
        name = f"[{host}]" if ":" in host else host
        self.address: str = f"http://{name}:{port}/?token={self._token}"
        """The address to open."""
        names = _LOOPBACK if name in _LOOPBACK else (name,)
        self._hosts = {f"{each}:{port}" for each in names}
        self._cookie = f"queen-watch-{port}"
        """Cookies know no ports: two pages must not take each other's."""
        # Neither follows from the other: a cookie that another port got opens nothing.
        self._ticket = secrets.token_urlsafe(_TOKEN_BYTES)
        self._key = secrets.token_urlsafe(_TOKEN_BYTES)

    def refusal(self, request: Request) -> str | None:
        """Returns why a request is refused, or None."""
        host, origin = request.headers.get("host"), request.headers.get("origin")
        if host not in self._hosts:
            return "this address is not the one that queen watch printed"
        # A page of another site cannot leave its origin out of a request that writes.
        if origin != f"http://{host}" and (origin is not None or request.method != "GET"):
            return "another page asked for this"
        has_ticket = _same(request.cookies.get(self._cookie), self._ticket)
        if not has_ticket and not self._enters(request):
            return "the token is missing: open the whole address that queen watch printed"
        path = request.url.path
        given = path.removeprefix(EVENTS) if path.startswith(EVENTS) else request.headers.get(KEY)
        is_private = path.startswith(EVENTS) or request.method != "GET"
        if is_private and not _same(given, self._key):
            return "the key is missing: open the whole address that queen watch printed"
        return None

    def entrance(self, request: Request) -> Response | None:
        """Returns what turns the token of the address into a cookie and a key, so that it is in no
        history and no screenshot; None if this is no such request.
        """
        if request.url.path != "/" or "token" not in request.query_params:
            return None
        if not self._enters(request):
            return _refused("this is another token")
        entered = RedirectResponse(f"/#{self._key}", 303)
        entered.set_cookie(self._cookie, self._ticket, httponly=True, samesite="strict")
        return entered

    def _enters(self, request: Request) -> bool:
        is_page = request.url.path == "/"
        return is_page and _same(request.query_params.get("token"), self._token)


class Gated:
    """An application behind a gate."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request through, or refuses it; what is answered is for this page alone."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        request = Request(scope)
        refusal = self._gate.refusal(request)
        answer = _refused(refusal) if refusal else self._gate.entrance(request)
        await (answer or self._app)(scope, receive, protected)


def _refused(why: str) -> Response:
    return PlainTextResponse(f"queen watch: {why}\n", 403)


def _same(given: str | None, ours: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(errors="replace"), ours.encode())
