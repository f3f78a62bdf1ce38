"""JSON-RPC over two streams, a message on each line: what a client sends is read with care.

Nothing here knows the hive, so that it is there at once. A line that is no message is answered, so
that no client waits on; nothing that a line holds ends the server.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

Id = str | int

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
MOST_LINE_BYTES = 16 * 1024 * 1024
"""No call has so much: all of its texts together have a million characters at most."""


class Refusal(Exception):
    """A request that the protocol has an error for."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.identifier: Id | None = None
        """The request that it answers, if that could be read."""


class Wire:
    """Both directions of one client's connection. Safe for threads, but for `lines`."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._writing = threading.Lock()
        self._asked: dict[Id, tuple[threading.Event, list[object]]] = {}

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yields the requests and notifications of the client until it ends."""
        for line in self._lines():
            try:
                message = parsed(line)
            except Refusal as refusal:
                self.refuse(refusal.identifier, refusal)
                continue
            if "method" in message:
                yield message
            elif message["id"] in self._asked:
                answered, found = self._asked[message["id"]]
                found.append(message.get("result"))
                answered.set()

    def ask(self, method: str, patience_s: float) -> object:
        """Returns what the client answers to a request, or None if it does not in time."""
        identifier, answered, found = len(self._asked) + 1, threading.Event(), list[object]()
        self._asked[identifier] = answered, found
        self._send({"id": identifier, "method": method})
        answered.wait(patience_s)
        return found[0] if found else None

    def forsake(self) -> None:
        """Lets nobody wait any longer for an answer of the client."""
        for answered, _ in list(self._asked.values()):
            answered.set()

    def answer(self, identifier: Id, result: Mapping[str, object]) -> None:
        """Sends the result of a request."""
        self._send({"id": identifier, "result": result})

    def refuse(self, identifier: Id | None, refusal: Refusal) -> None:
        """Sends the error of a request."""
        error: dict[str, object] = {"code": refusal.code, "message": str(refusal)}
        if refusal.data is not None:
            error["data"] = refusal.data
        self._send({"id": identifier, "error": error})

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Sends what wants no answer."""
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, object]) -> None:
        whole = {"jsonrpc": "2.0", **message}
        try:
            data = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # Half a character, which JSON can escape.
            data = json.dumps(whole, separators=(",", ":")).encode()
        # A client that is gone hears nothing; the end of what it sends ends the server.
        with self._writing, suppress(OSError, ValueError):
            self._outgoing.write(data + b"\n")
            self._outgoing.flush()

    def _lines(self) -> Iterator[bytes]:
        while line := self._incoming.readline(MOST_LINE_BYTES):
            if not line.endswith(b"\n") and len(line) == MOST_LINE_BYTES:
                while (rest := self._incoming.readline(MOST_LINE_BYTES)) and rest[-1:] != b"\n":
                    pass
                line = b"{"  # No JSON, either.
            if line.strip():
                yield line


def parsed(line: bytes) -> dict[str, Any]:
    """Returns the message in a line: its `id`, if it has one, is a text or a number, its `params`
    are an object, and it has a `method` or answers a request of ours. Raises `Refusal`.
    """
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError):
        raise Refusal(PARSE_ERROR, "this line is not JSON") from None
    refusal = Refusal(INVALID_REQUEST, "this is not a JSON-RPC message")
    if not isinstance(value, dict):
        raise refusal
    identifier = value.get("id")
    if isinstance(identifier, str | int) and not isinstance(identifier, bool):
        refusal.identifier = identifier
    elif "id" in value:
        raise refusal
    if "method" not in value and refusal.identifier is not None:
        if "result" in value or "error" in value:
            return value
        raise refusal
    if not isinstance(value.get("method"), str) or value.get("jsonrpc") != "2.0":
        raise refusal
    params = value.get("params")
    value["params"] = {} if params is None else params
    if not isinstance(value["params"], dict):
        refusal.code = INVALID_PARAMS
        raise refusal
    return value
