"""The server: one client on standard input and output, answered before anything heavy is imported.

Each request says by itself which form of the protocol it is in: from 2026 on, it has the version in
its `_meta`; before, the client has said it once, in `initialize`. Both are served on one
connection, in any order, because clients try one and then the other. ADR 0028.
"""

from __future__ import annotations

import gc
import os
import queue
import signal
import threading
import traceback
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from queenbee.core.text import printable
from queenbee.errors import Bug
from queenbee.mcp.guide import INSTRUCTIONS, LOOP
from queenbee.mcp.request import OF_HIVE, SERVER, SUBSCRIBING, Cancelled, Request
from queenbee.mcp.wire import INVALID_PARAMS, METHOD_NOT_FOUND, Refusal, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.mcp.calls import Calls
    from queenbee.mcp.request import Result, Run
    from queenbee.mcp.wire import Id
    from queenbee.mcp.workspace import Workspace


STATEFUL = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions that a client agrees on by `initialize`, the newest last."""
STATELESS = ("2026-07-28",)
"""Those that each request says of itself."""
_UNSUPPORTED_VERSION, _INTERNAL_ERROR = -32022, -32603
_PATIENCE_S = 5.0
"""How long a client may take to say which folders it works in."""
_ENDING_S = 10.0
"""How long calls may take to notice that their client is gone: they look about once a second."""
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_CAPABILITIES: Result = {
    "tools": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": True},
    "prompts": {"listChanged": False},
}
_PROMPT: Result = {"name": "loop", "description": "How to take, do and complete issues here"}
_ALWAYS_THE_SAME: dict[str, Result] = {
    "ping": {},
    "server/discover": {
        "supportedVersions": list(STATELESS),
        "capabilities": {**_CAPABILITIES, "resources": {"listChanged": False, "subscribe": False}},
        "instructions": INSTRUCTIONS,
    },
    "prompts/list": {"prompts": [_PROMPT]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": LOOP}}]},
}


class Server:
    """One client's server. `open_workspace` is called once, when something needs the hive."""

    def __init__(self, open_workspace: Callable[[], Workspace], wire: Wire) -> None:
        self._open_workspace = open_workspace
        self.wire = wire
        self._client: dict[str, Any] = {}
        """What the client said of itself in `initialize`."""
        self._uris: list[str] | None = None
        """The folders of the client; None if it has not been asked yet."""
        self._calls: Calls | None = None
        self._live: dict[Id, Request] = {}
        self._waiting: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._ended = False

    def serve(self) -> None:
        """Answers the client until it closes its end, or a signal raises `Cancelled`."""
        self._start(self._work)
        try:
            for message in self.wire.messages():
                self._take(message)
        except Cancelled:
            for request in list(self._live.values()):
                request.over.set()
            raise
        finally:
            self._end()

    def _take(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message["params"]
        if "id" not in message:
            if method == "notifications/cancelled":
                asked = params.get("requestId")
                live = self._live.get(asked) if isinstance(asked, str | int) else None
                if live is not None:
                    live.over.set()
            elif method == "notifications/roots/list_changed":
                self._uris = None
            return
        request = Request(message, self._client)
        try:
            result = self._at_once(request)
        except Refusal as refusal:
            self.wire.refuse(request.identifier, refusal)
            return
        if result is not None:
            self.wire.answer(request.identifier, request.shaped(result))
        else:
            self._live[request.identifier] = request
            self._waiting.put(request)

    def _at_once(self, request: Request) -> Result | None:
        """Returns the result of what needs no hive, or None for the rest. Raises `Refusal`."""
        if request.method == "initialize":
            return self._initialized(request)
        if request.version is not None and request.version not in STATELESS:
            data = {"supported": list(STATELESS), "requested": request.version}
            raise Refusal(_UNSUPPORTED_VERSION, "this version is not supported", data)
        if request.method in OF_HIVE or (request.version is None and request.method in SUBSCRIBING):
            return None
        if request.method not in _ALWAYS_THE_SAME:
            raise Refusal(METHOD_NOT_FOUND, "Method not found", printable(request.method[:80]))
        if request.method == "server/discover":
            request.version = STATELESS[-1]
        if request.method == "prompts/get" and request.params.get("name") != _PROMPT["name"]:
            raise Refusal(INVALID_PARAMS, "there is no such prompt; there is: loop")
        return _ALWAYS_THE_SAME[request.method]

    def _initialized(self, request: Request) -> Result:
        request.version, self._client, self._uris = None, request.params, None
        wanted = request.params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in STATEFUL else STATEFUL[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": SERVER,
            "instructions": INSTRUCTIONS,
        }

    def _work(self) -> None:
        """Answers what needs the hive, one request after the other, but what may take long."""
        with suppress(Exception):  # Else the first request says what is wrong.
            self._opened()
        while (request := self._waiting.get()) is not None:
            later = None
            if not request.over.is_set():
                later = self._answer(request, self._first)
            if later is not None:
                self._start(partial(self._answer, request, later))

    def _first(self, request: Request) -> Result | Run:
        return self._opened().answer(request)

    def _opened(self) -> Calls:
        from queenbee.mcp.calls import Calls  # noqa: PLC0415 - start-up

        if self._calls is None:
            self._calls = Calls(self._open_workspace(), self._folders, self._tell, self._updated)
        return self._calls

    def _answer(self, request: Request, run: Run) -> Run | None:
        """Sends what `run` returns for a request; if that is a function, returns it for later."""
        try:
            result = run(request)
            if callable(result):
                return result
            if not request.over.is_set():
                self.wire.answer(request.identifier, request.shaped(result))
        except Refusal as refusal:
            self.wire.refuse(request.identifier, refusal)
        except Cancelled:
            pass
        except Exception as error:  # noqa: BLE001 - nothing that one call does ends the server
            if os.environ.get("QUEEN_DEBUG"):
                traceback.print_exc()
            self.wire.refuse(request.identifier, Refusal(_INTERNAL_ERROR, Bug.of(error).message))
        self._live.pop(request.identifier, None)
        return None

    def _folders(self, request: Request) -> list[str]:
        """Returns the addresses of the folders that the client works in, if it says."""
        able = self._client.get("capabilities")
        if request.version is not None or not isinstance(able, dict) or able.get("roots") is None:
            return []
        if self._uris is None:
            found = self.wire.ask("roots/list", _PATIENCE_S)
            roots = found.get("roots") if isinstance(found, dict) else None
            uris = [each.get("uri") for each in roots or () if isinstance(each, dict)]
            self._uris = [each for each in uris if isinstance(each, str)]
        return self._uris

    def _tell(self, request: Request, done: float, total: float | None, message: str) -> None:
        """Reports the progress of a call, if the client asked for it. Raises `Cancelled` if it no
        longer wants the answer.
        """
        if self._ended or request.over.is_set():
            raise Cancelled
        token = request.meta.get("progressToken")
        if isinstance(token, str | int):
            params = {"progressToken": token, "progress": done, "message": printable(message)}
            more = {"total": total} if total is not None else {}
            self.wire.notify("notifications/progress", {**params, **more})

    def _updated(self, uri: str) -> None:
        """Says that a resource has changed."""
        self.wire.notify("notifications/resources/updated", {"uri": uri})

    def _start(self, run: Callable[[], object]) -> None:
        self._threads = [each for each in self._threads if each.is_alive()]
        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()

    def _end(self) -> None:
        """Waits for what is being written, and for the places in line to be given up."""
        self._waiting.put(None)
        self.wire.forsake()
        for thread in self._threads[:1]:
            thread.join(_ENDING_S)
        self._ended = True
        for thread in self._threads:
            thread.join(_ENDING_S)
        if self._calls is not None:
            self._calls.close()


def serve(open_workspace: Callable[[], Workspace]) -> None:
    """Serves one client until it closes standard input, or sends a signal to end."""
    gc.enable()  # `queen` does without it: its other commands live for milliseconds.

    def end(number: int, frame: object) -> None:
        for each in _ENDS:
            signal.signal(each, signal.SIG_IGN)
        raise Cancelled

    with _streams() as (incoming, outgoing):
        before = [(each, signal.getsignal(each)) for each in _ENDS]
        try:
            for each in _ENDS:
                signal.signal(each, end)
            Server(open_workspace, Wire(incoming, outgoing)).serve()
        except Cancelled:
            os._exit(0)  # What is slow to end would be waited for.
        for each, handler in before:
            signal.signal(each, handler)


@contextmanager
def _streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yields standard input and output for the protocol alone: what code here or a program that it
    runs prints goes to standard error, and they have nothing to read.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # Standard error is closed.
        os.dup2(nothing, 1)
    os.close(nothing)
    with os.fdopen(incoming, "rb") as read, os.fdopen(outgoing, "wb") as written:
        try:
            yield read, written
        finally:
            os.dup2(incoming, 0)
            os.dup2(outgoing, 1)
