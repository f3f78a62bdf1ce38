"""The server: the SDK's end of the tools, on standard input and output.

Everything that touches files runs in a thread, so that no client waits for another call. Short
calls run one after the other on one open hive; a call that may take long has a hive of its own.
"""

from __future__ import annotations

import gc
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import mcp_types as types
from anyio import CapacityLimiter, from_thread, to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from queenbee.core.plain_json import error_document
from queenbee.core.text import printable, shortened
from queenbee.errors import Bug, Busy, InvalidInput, NotFound, QueenError
from queenbee.mcp import arguments, resources
from queenbee.mcp.incoming import mend
from queenbee.mcp.resources import INSTRUCTIONS, LOOP
from queenbee.mcp.results import answered, document_of, refused
from queenbee.mcp.tools import TOOLS, Call
from queenbee.store.droids.presence import Beat
from queenbee.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp.server.context import ServerRequestContext

    from queenbee.mcp.results import Answer
    from queenbee.mcp.tools import Tool
    from queenbee.mcp.workspace import Session, Workspace

    Context = ServerRequestContext[Any, Any]

MOST_LONG_CALLS = 16
"""How many calls of one client may wait, or run checks, at the same time."""
_PATIENCE_S = 5.0
"""How long a client may take to say which folders it works in, or to take a report."""
_RESOURCE_NOT_FOUND = -32002
_ROOT = "root"


def serve(workspace: Workspace) -> None:
    """Serves one client until it closes standard input, or sends a signal to end."""
    gc.enable()  # `queen` does without it: its other commands live for milliseconds.
    anyio.run(_serve, workspace)


async def _serve(workspace: Workspace) -> None:
    async with anyio.create_task_group() as group, stdio_server() as (incoming, outgoing):
        server = server_of(workspace)
        stop = anyio.CancelScope()
        group.start_soon(_cancel_at_signal, stop)
        mended, read = anyio.create_memory_object_stream[SessionMessage | Exception]()
        group.start_soon(mend, incoming, outgoing, mended)
        with stop:
            await server.run(read, outgoing, server.create_initialization_options())
        workspace.close()
        if stop.cancel_called:
            # The thread that reads standard input would wait for its end, and we with it.
            os._exit(0)
        group.cancel_scope.cancel()


async def _cancel_at_signal(scope: anyio.CancelScope) -> None:
    ends = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    with anyio.open_signal_receiver(*ends) as signals:
        async for _ in signals:
            scope.cancel()


def server_of(workspace: Workspace) -> Server[Any]:
    """Returns the server of one client's workspace, to be run on any transport."""
    handlers = _Handlers(workspace)
    server: Server[Any] = Server(
        "queenbee",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    server.middleware.clear()  # It would report every call to a tracing service, if there is one.
    server.add_notification_handler(
        "notifications/roots/list_changed", types.NotificationParams, handlers.roots_changed
    )
    return server


def declared(tool: Tool, roots: Sequence[str]) -> types.Tool:
    """Returns a tool as clients list it; with several roots, it takes one of them."""
    schema = arguments.schema_of(tool.arguments)
    if len(roots) > 1:
        properties = {**schema.get("properties", {}), _ROOT: {"enum": list(roots)}}  # type: ignore[dict-item]
        required = [*schema.get("required", []), _ROOT]  # type: ignore[misc]
        schema = {**schema, "properties": properties, "required": required}
    hints = types.ToolAnnotations(read_only_hint=True) if tool.reads_only else None
    return types.Tool(
        name=tool.name, description=tool.about, input_schema=schema, annotations=hints
    )


class _Place(NamedTuple):
    """Where a call works: the folders of the client, the one that it names, and its session."""

    uris: list[str]
    root: str | None
    session: Session


class _Handlers:
    """What the server does at each request of its client."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._short = CapacityLimiter(1)
        self._long = CapacityLimiter(MOST_LONG_CALLS)
        self._long_calls = 0
        self._asking = anyio.Lock()
        self._uris: list[str] | None = None
        """The roots that the client named; None if it has not been asked yet."""

    async def list_tools(self, ctx: Context, params: object) -> types.ListToolsResult:
        roots = await self._in_short(self._workspace.roots, await self._roots_of(ctx))
        return types.ListToolsResult(tools=[declared(each, roots) for each in TOOLS.values()])

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        uris, session = await self._roots_of(ctx), self._session(ctx)
        answer = await self._answer(ctx, params.name, params.arguments or {}, uris, session)
        return types.CallToolResult(
            content=[types.TextContent(text=each) for each in answer.texts],
            structured_content=answer.structured,
            is_error=answer.refused,
        )

    async def _answer(
        self,
        ctx: Context,
        name: str,
        given: Mapping[str, object],
        uris: list[str],
        session: Session,
    ) -> Answer:
        try:
            tool = TOOLS.get(name)
            if tool is None:
                known = f"the tools are {', '.join(TOOLS)}"
                raise NotFound(f"there is no tool {shortened(name)!r}", hint=known)
            given = dict(given)
            root = given.pop(_ROOT, None)
            if root is not None and not isinstance(root, str):
                raise InvalidInput("root is a string")
            values = arguments.read(name, tool.arguments, given)
            is_long = tool.is_long(values)
            if is_long and self._long_calls == MOST_LONG_CALLS:
                raise Busy(f"{MOST_LONG_CALLS} calls of this client wait already", hint="try later")
        except QueenError as error:
            return refused(error, [])
        run = self._prepared(ctx, tool, values, _Place(uris, root, session), own=is_long)
        if not is_long:
            return await to_thread.run_sync(run, limiter=self._short)
        self._long_calls += 1
        try:
            return await to_thread.run_sync(run, limiter=self._long)
        finally:
            self._long_calls -= 1

    def _prepared(
        self, ctx: Context, tool: Tool, values: Mapping[str, Any], place: _Place, *, own: bool
    ) -> Callable[[], Answer]:
        """Returns the function that a thread calls for the answer of a tool."""

        async def report(done: float, total: float | None, message: str) -> None:
            with anyio.move_on_after(_PATIENCE_S):
                await ctx.session.report_progress(done, total, message)

        def tell_progress(done: float, total: float | None, message: str) -> None:
            from_thread.check_cancelled()
            from_thread.run(report, done, total, printable(message))

        def run() -> Answer:
            call = None
            try:
                call = self._call(values, place, own=own, tell_progress=tell_progress)
                with Beat(call.arrive):
                    value = tool.run(call)
                call.arrive()
                call.send()
                return answered(value, _notices(tool, call))
            except QueenError as error:
                return refused(error, _notices(tool, call))
            except Exception as error:
                if self._workspace.env.get("QUEEN_DEBUG"):
                    raise
                return refused(Bug.of(error), _notices(tool, call))
            finally:
                if own and call is not None and call.opened is not None:
                    call.opened.close()

        return run

    def _call(
        self,
        values: Mapping[str, Any],
        place: _Place,
        *,
        own: bool,
        tell_progress: Callable[[float, float | None, str], None],
    ) -> Call:
        workspace = self._workspace
        root = workspace.chosen(workspace.roots(place.uris), place.root)
        opened = workspace.own_hive if own else workspace.hive
        return Call(
            lambda: opened(place.session, root),
            values,
            env=workspace.env,
            root=root,
            beads_dir=workspace.beads_dir,
            droid=workspace.name(place.session, None),
            tell_progress=tell_progress,
        )

    async def list_resources(self, ctx: Context, params: object) -> types.ListResourcesResult:
        about = "Your messages, newest first"
        inbox = types.Resource(
            name="inbox", uri=resources.INBOX, description=about, mime_type="application/json"
        )
        return types.ListResourcesResult(resources=[inbox])

    async def list_resource_templates(
        self, ctx: Context, params: object
    ) -> types.ListResourceTemplatesResult:
        issue = types.ResourceTemplate(
            name="issue",
            uri_template=resources.ISSUE,
            description="An issue with its holder, reserved files and thread",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[issue])

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uris, session, uri = await self._roots_of(ctx), self._session(ctx), str(params.uri)

        def read() -> str:
            workspace = self._workspace
            place = workspace.chosen(workspace.roots(uris), resources.root_of(uri))
            return document_of(resources.read(workspace.hive(session, place), uri))

        try:
            text = await self._in_short(read)
        except QueenError as error:
            code = _RESOURCE_NOT_FOUND if isinstance(error, NotFound) else types.INVALID_PARAMS
            data = error_document(error)
            raise MCPError(code, printable(error.message), data) from error
        content = types.TextResourceContents(uri=uri, text=text, mime_type="application/json")
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, ctx: Context, params: object) -> types.ListPromptsResult:
        loop = types.Prompt(name="loop", description="How to take, do and complete issues here")
        return types.ListPromptsResult(prompts=[loop])

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name != "loop":
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {shortened(params.name)!r}")
        message = types.PromptMessage(role="user", content=types.TextContent(text=LOOP))
        return types.GetPromptResult(messages=[message])

    async def roots_changed(self, ctx: Context, params: object) -> None:
        self._uris = None

    def _session(self, ctx: Context) -> Session:
        client = ctx.session.client_params
        name = client.client_info.name if client is not None else None
        return self._workspace.session(name, ctx.meta)

    async def _in_short(self, function: Callable[..., Any], *given: object) -> Any:
        return await to_thread.run_sync(function, *given, limiter=self._short)

    async def _roots_of(self, ctx: Context) -> list[str]:
        """Returns the addresses of the folders that the client works in, if it says."""
        async with self._asking:
            if self._uris is None:
                self._uris = await _asked(ctx)
            return self._uris


async def _asked(ctx: Context) -> list[str]:
    able = ctx.session.client_capabilities
    if able is None or able.roots is None or not ctx.session.can_send_request:
        return []
    try:
        found = await ctx.session.send_request(
            types.ListRootsRequest(),
            types.ListRootsResult,
            request_read_timeout_seconds=_PATIENCE_S,
        )
    except (MCPError, ValueError):
        return []
    return [str(each.uri) for each in found.roots]


def _notices(tool: Tool, call: Call | None) -> list[str]:
    """Returns what the command would tell besides its answer."""
    if call is None:
        return []
    told = list(call.notices)
    if call.opened is not None:
        with suppress(QueenError):
            told += call.opened.notes(mail=tool.name not in ("inbox", "next", "wait"))
    return told
