"""A model on 127.0.0.1 that plays scripts.

A script is a generator: it yields what the model says, and is sent the next request of its
conversation. So it can look at what the client tells the model, and act on it:

    def script(request):
        request = yield Call("read", {"path": "a.py"})
        yield "Its text is " + request.last

The first segment of a path is the run. Each conversation of a run begins with a word that only its
prompt has; a request without any of them, or one that offers no tools, is for a title or a summary.
"""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.clients.wires import Request, Said, wire_of

Script = Callable[[Request], Generator[Said, Request, None]]

_ASIDE = '{"title": "A title", "isNewTopic": false}'
_AFTER_THE_SCRIPT = "I have nothing more to say."


class Conversation:
    """A script that plays, and what it was sent."""

    def __init__(self, word: str, script: Script) -> None:
        self.word = word
        self.requests: list[Request] = []
        self.failure: Exception | None = None
        self._script = script
        self._playing: Generator[Said, Request, None] | None = None
        self._turn = threading.Lock()

    def answer(self, request: Request) -> Said:
        """Returns what the model says to a request; after the end of the script, a few words."""
        with self._turn:
            self.requests.append(request)
            try:
                if self._playing is None:
                    self._playing = self._script(request)
                    return next(self._playing)
                return self._playing.send(request)
            except StopIteration:
                return _AFTER_THE_SCRIPT
            except Exception as failure:  # noqa: BLE001 - the table tells it
                self.failure = failure
                return f"The script failed: {failure}"


class Play:
    """One run: its conversations, the first of which is looked for first, and requests aside."""

    def __init__(self, **scripts: Script) -> None:
        self.conversations = [Conversation(word, script) for word, script in scripts.items()]
        self.aside: list[Request] = []

    def answer(self, request: Request) -> Said:
        """Returns what the model says."""
        talk = request.talk
        for each in self.conversations:
            if each.word in talk and request.tools:
                return each.answer(request)
        self.aside.append(request)
        return _ASIDE

    @property
    def requests(self) -> list[Request]:
        """What the first conversation was sent."""
        return self.conversations[0].requests


class Model:
    """The server. It serves from a thread until it is closed."""

    def __init__(self) -> None:
        self.plays: dict[str, Play] = {}
        handler = type("Handler", (_Handler,), {"plays": self.plays})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def address(self, run: str) -> str:
        """Returns the base address of a run."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{run}"

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    plays: dict[str, Play]

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, data: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_GET(self) -> None:
        models = [{"id": "scripted", "object": "model", "owned_by": "bench", "created": 0}]
        self._send(json.dumps({"object": "list", "data": models}).encode())

    do_HEAD = do_GET  # noqa: N815 - named so by the library

    def do_POST(self) -> None:
        body = _body(self.rfile.read(int(self.headers["content-length"] or 0)), self.headers)
        path = self.path.split("?")[0].rstrip("/")
        play, wire = self.plays.get(path.split("/")[1]), wire_of(path)
        if play is None or wire is None:
            self._send(b'{"input_tokens": 10, "totalTokens": 10}')  # What counting asks for.
            return
        whole, events = wire(play.answer(Request(body)))
        if not body.get("stream") and "stream" not in path:
            self._send(json.dumps(whole).encode())
            return
        told = [
            (f"event: {name}\n" if name else "")
            + f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
            for name, event in events
        ]
        self._send("".join(told).encode(), "text/event-stream")


def _body(data: bytes, headers: Any) -> dict[str, Any]:
    encoding = headers.get("content-encoding")
    if encoding == "gzip":
        data = gzip.decompress(data)
    elif encoding == "deflate":
        data = zlib.decompress(data)
    read = json.loads(data or b"{}")
    return read if isinstance(read, dict) else {}
