"""What the server does at each request that needs the hive.

Everything here runs in threads of the server. Short calls run one after the other on one open hive;
a call that may take long has a hive and a thread of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from queenbee.core.json_form import error_document
from queenbee.core.text import printable, shortened
from queenbee.errors import Bug, Busy, InvalidInput, NotFound, QueenError
from queenbee.mcp import arguments, resources
from queenbee.mcp.request import SUBSCRIBING, UNSUBSCRIBE, Request, Result, Run
from queenbee.mcp.results import Answer, answered, document_of, refused
from queenbee.mcp.subscriptions import Subscriptions
from queenbee.mcp.tools import TOOLS, Call, Tool
from queenbee.mcp.wire import INVALID_PARAMS, Refusal
from queenbee.mcp.workspace import Workspace
from queenbee.store.droids.presence import Beat

MOST_LONG_CALLS = 16
"""How many calls of one client may wait, or run checks, at the same time."""
_RESOURCE_NOT_FOUND = -32002
_ROOT = "root"
_JSON = "application/json"
_INBOX = {"name": "inbox", "description": "Your messages, newest first", "mimeType": _JSON}
_ISSUE = {
    "name": "issue",
    "description": "An issue with its holder, reserved files and thread",
    "mimeType": _JSON,
}
_OUTPUT: Result = {"type": "object", "required": ["result"]}
"""What `structuredContent` is: its `result` is the document of the command."""
_ALWAYS = "anthropic/alwaysLoad"
_LISTS: dict[str, Result] = {
    "resources/list": {"resources": [{**_INBOX, "uri": resources.INBOX}]},
    "resources/templates/list": {"resourceTemplates": [{**_ISSUE, "uriTemplate": resources.ISSUE}]},
}


class Calls:
    """The tools and resources of one client's workspace."""

    def __init__(
        self,
        workspace: Workspace,
        folders: Callable[[Request], Sequence[str]],
        tell: Callable[[Request, float, float | None, str], None],
        tell_updated: Callable[[str], None],
    ) -> None:
        self._workspace = workspace
        self._folders = folders
        """Returns the addresses of the folders that the client works in."""
        self._tell = tell
        """Reports how far a call is; raises if the client no longer wants its answer."""
        self._subscriptions = Subscriptions(tell_updated)
        self._long = threading.BoundedSemaphore(MOST_LONG_CALLS)

    def answer(self, request: Request) -> Result | Run:
        """Returns the result of a request, or the function that returns it in a thread of its own.
        Raises `Refusal`.
        """
        uris = self._folders(request)
        if request.method == "tools/list":
            roots = self._workspace.roots(uris)
            return {"tools": [declared(each, roots) for each in TOOLS.values()]}
        if request.method in _LISTS:
            return _LISTS[request.method]
        if request.method == "resources/read":
            return self._read(request, uris)
        if request.method in SUBSCRIBING:
            return self._subscribe(request, uris)
        return self._call(request, uris)

    def close(self) -> None:
        """Closes the hives."""
        self._subscriptions.close()
        self._workspace.close()

    def _read(self, request: Request, uris: Sequence[str]) -> Result:
        uri, workspace = request.params.get("uri"), self._workspace
        if not isinstance(uri, str):
            raise Refusal(INVALID_PARAMS, "uri is a string")
        try:
            place = workspace.chosen(workspace.roots(uris), resources.root_of(uri))
            hive = workspace.hive(workspace.session(request.client, request.meta), place)
            text = document_of(resources.read(hive, uri))
        except QueenError as error:
            code = _RESOURCE_NOT_FOUND if isinstance(error, NotFound) else INVALID_PARAMS
            raise Refusal(code, printable(error.message), error_document(error)) from error
        return {"contents": [{"uri": uri, "text": text, "mimeType": _JSON}]}

    def _subscribe(self, request: Request, uris: Sequence[str]) -> Result:
        uri, workspace = str(request.params.get("uri")), self._workspace
        if request.method == UNSUBSCRIBE:
            self._subscriptions.remove(uri)
            return {}
        self._read(request, uris)  # It says if there is none.
        place = workspace.chosen(workspace.roots(uris), resources.root_of(uri))
        session = workspace.session(request.client, request.meta)
        self._subscriptions.add(place, uri, lambda: workspace.own_hive(session, place))
        return {}

    def _call(self, request: Request, uris: Sequence[str]) -> Result | Run:
        name, given = request.params.get("name"), request.params.get("arguments")
        if not isinstance(name, str) or not isinstance(given, dict | None):
            raise Refusal(INVALID_PARAMS, "name is a string, and arguments are an object")
        given = dict(given or {})
        root = given.pop(_ROOT, None)
        try:
            tool = TOOLS.get(name)
            if tool is None:
                known = f"the tools are {', '.join(TOOLS)}"
                raise NotFound(f"there is no tool {shortened(name)!r}", hint=known)
            if root is not None and not isinstance(root, str):
                raise InvalidInput("root is a string")
            values = arguments.read(name, tool.arguments, given)
            is_long = tool.is_long(values)
            if is_long and not self._long.acquire(blocking=False):
                raise Busy(f"{MOST_LONG_CALLS} calls of this client wait already", hint="try later")
        except QueenError as error:
            return _as_result(refused(error, []))

        place = _CallSite(uris, root, is_long)

        def run(request: Request) -> Result:
            try:
                return self._run(tool, partial(self._prepared, request, values, place))
            finally:
                if is_long:
                    self._long.release()

        return run if is_long else run(request)

    def _run(self, tool: Tool, prepared: Callable[[], Call]) -> Result:
        call = None
        try:
            call = prepared()
            with Beat(call.arrive):
                value = tool.run(call)
            call.arrive()
            call.send()
            return _as_result(answered(value, _notices(tool, call)))
        except QueenError as error:
            return _as_result(refused(error, _notices(tool, call)))
        except Exception as error:
            if self._workspace.env.get("QUEEN_DEBUG"):
                raise
            return _as_result(refused(Bug.of(error), _notices(tool, call)))
        finally:
            if call is not None and call.own and call.opened is not None:
                call.opened.close()

    def _prepared(self, request: Request, values: Mapping[str, Any], place: _CallSite) -> Call:
        workspace = self._workspace
        root = workspace.chosen(workspace.roots(place.uris), place.root)
        session = workspace.session(request.client, request.meta)
        opened = workspace.own_hive if place.own else workspace.hive
        return Call(
            lambda: opened(session, root),
            values,
            env=workspace.env,
            root=root,
            beads_dir=workspace.beads_dir,
            droid=workspace.name(session, None),
            tell_progress=partial(self._tell, request),
            own=place.own,
        )


class _CallSite(NamedTuple):
    """Where a call works: the folders of the client, the one that it names, and whether it has a
    hive of its own.
    """

    uris: Sequence[str]
    root: str | None
    own: bool


def declared(tool: Tool, roots: Sequence[str]) -> Result:
    """Returns a tool as clients list it; with several roots, it takes one of them."""
    schema = arguments.schema_of(tool.arguments)
    if len(roots) > 1:
        properties = {**schema.get("properties", {}), _ROOT: {"enum": list(roots)}}  # type: ignore[dict-item]
        required = [*schema.get("required", []), _ROOT]  # type: ignore[misc]
        schema = {**schema, "properties": properties, "required": required}
    # Some clients ask their user about what may destroy something or reach others, or refuse it.
    hints: Result = {"destructiveHint": False, "openWorldHint": False}
    if tool.reads_only:
        hints["readOnlyHint"] = True
    found: Result = {"name": tool.name, "description": tool.about, "inputSchema": schema}
    found |= {"outputSchema": _OUTPUT, "annotations": hints}
    return {**found, "_meta": {_ALWAYS: True}} if tool.of_loop else found


def _as_result(answer: Answer) -> Result:
    return {
        "content": [{"type": "text", "text": each} for each in answer.texts],
        "structuredContent": answer.structured,
        "isError": answer.refused,
    }


def _notices(tool: Tool, call: Call | None) -> list[str]:
    """Returns what the command would tell besides its answer."""
    if call is None:
        return []
    told = list(call.notices)
    if call.opened is not None:
        with suppress(QueenError):
            told += call.opened.notes(mail=tool.name not in ("inbox", "next", "wait"))
    return told
