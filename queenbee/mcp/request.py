"""One request of a client of `queen mcp`, and the form that its answer has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from queenbee.mcp.wire import Id
from queenbee.version import __version__

Result = dict[str, object]
Run = Callable[["Request"], "Result | Run"]

SERVER: Result = {"name": "queenbee", "version": __version__}
_META = "io.modelcontextprotocol/"
OF_HIVE = frozenset((
    "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list",
))  # fmt: skip
"""What needs the hive; all else is answered at once."""
UNSUBSCRIBE = "resources/unsubscribe"
SUBSCRIBING = frozenset(("resources/subscribe", UNSUBSCRIBE))
"""What a client of `initialize` may ask of the hive, too: only that one has a connection."""
_KEPT = OF_HIVE - {"tools/call"} | {"server/discover", "prompts/list"}
"""What a client from 2026 on may keep for `ttlMs`; not at all, since a hive may come or go."""


class Cancelled(BaseException):
    """Ends a call that nobody waits for any more. It is no error, so nothing may keep it."""


class Request:
    """One request of the client."""

    def __init__(self, message: Mapping[str, Any], client: Mapping[str, Any]) -> None:
        self.identifier: Id = message["id"]
        self.method: str = message["method"]
        self.params: dict[str, Any] = message["params"]
        meta = self.params.get("_meta")
        self.meta: dict[str, Any] = meta if isinstance(meta, dict) else {}
        self.version: Any | None = self.meta.get(f"{_META}protocolVersion")
        """The version that the request says of itself, or None for a client of `initialize`."""
        info = self.meta.get(f"{_META}clientInfo") or client.get("clientInfo")
        name = info.get("name") if isinstance(info, dict) else None
        self.client: str | None = name if isinstance(name, str) else None
        self.over: threading.Event = threading.Event()
        """Set if nobody wants the answer any more."""

    def shaped(self, result: Result) -> Result:
        """Returns a result in the form of the request's version."""
        if self.version is None:
            return result
        kept = {"ttlMs": 0, "cacheScope": "private"} if self.method in _KEPT else {}
        meta = {f"{_META}serverInfo": SERVER}
        return {"resultType": "complete", **kept, **result, "_meta": meta}
