"""Clients of `queen mcp`: in this process, or over the standard streams of a real one.

The tests are in `tests/mcp_surface`: a folder `tests/mcp` would be found in place of the SDK.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from hives import COMMAND
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage

from queenbee.mcp.server import Server
from queenbee.mcp.wire import Wire
from queenbee.mcp.workspace import Workspace

ERAS = ("legacy", "auto")
"""The handshake of 2025, and requests that each say what they need."""


def inside(
    tree: Path, act: Callable[[Client], Awaitable[Any]], *, name: str = "Tester", **more: Any
) -> Any:
    """Runs `act` with a client of a server in this process, and returns its result."""

    async def run() -> Any:
        env = {"QUEEN_DURABILITY": "buffered", **more.pop("env", {})}
        workspace = Workspace(env, str(tree), **more.pop("given", {}))
        info = types.Implementation(name=name, version="1")
        async with Client(_over_pipes(workspace), client_info=info, **more) as client:  # type: ignore[arg-type]
            return await act(client)

    return anyio.run(run)


@asynccontextmanager
async def _over_pipes(workspace: Workspace) -> AsyncIterator[Any]:
    """The two streams of a client of a server that runs in a thread."""
    ends = [os.pipe(), os.pipe()]
    incoming, outgoing = os.fdopen(ends[0][0], "rb"), os.fdopen(ends[1][1], "wb")
    to_server, to_client = os.fdopen(ends[0][1], "wb"), os.fdopen(ends[1][0], "rb")
    served = threading.Thread(target=Server(lambda: workspace, Wire(incoming, outgoing)).serve)
    served.start()
    send, received = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    sent, receive = anyio.create_memory_object_stream[SessionMessage](math.inf)

    async def up() -> None:
        async for message in receive:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            to_server.write(text.encode() + b"\n")
            to_server.flush()

    async def down() -> None:
        while line := await anyio.to_thread.run_sync(to_client.readline):
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            await send.send(SessionMessage(message))

    async with anyio.create_task_group() as group:
        group.start_soon(up)
        group.start_soon(down)
        yield received, sent
        to_server.close()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(served.join)
            outgoing.close()
        group.cancel_scope.cancel()
    for each in (incoming, to_client, send, received, sent, receive):
        each.close()


@asynccontextmanager
async def over_stdio(
    tree: Path,
    *arguments: str,
    name: str = "Tester",
    env: dict[str, str] | None = None,
    mode: str = "legacy",
    **more: Any,
) -> AsyncIterator[Client]:
    """A client of a real `queen mcp`, started in a folder."""
    program, *first = COMMAND
    place = StdioServerParameters(
        command=program,
        args=[*first, "mcp", *arguments],
        cwd=str(tree),
        env={**os.environ, "QUEEN_DURABILITY": "buffered", **(env or {})},
    )
    info = types.Implementation(name=name, version="1")
    async with Client(stdio_client(place), client_info=info, mode=mode, **more) as client:  # type: ignore[arg-type]
        yield client


def texts(result: types.CallToolResult) -> list[Any]:
    """Returns the documents in an answer."""
    found = []
    for each in result.content:
        assert isinstance(each, types.TextContent)
        found.append(json.loads(each.text))
    return found


def result_of(answer: types.CallToolResult) -> Any:
    """Returns the result of a tool that was not refused."""
    assert not answer.is_error, texts(answer)
    assert answer.structured_content["result"] == texts(answer)[0]
    return answer.structured_content["result"]


def error_of(answer: types.CallToolResult) -> dict[str, Any]:
    """Returns the refusal of a tool."""
    assert answer.is_error, texts(answer)
    assert answer.structured_content["error"] == texts(answer)[0]["error"]
    error: dict[str, Any] = answer.structured_content["error"]
    return error


def called(tree: Path, *calls: tuple[str, dict[str, Any]], **more: Any) -> list[Any]:
    """Returns the answers of these calls, one after the other, of one client in this process."""

    async def act(client: Client) -> list[Any]:
        return [await client.call_tool(name, given) for name, given in calls]

    answers: list[Any] = inside(tree, act, **more)
    return answers


def roots_at(folders: Sequence[Path]) -> Callable[[Any], Awaitable[types.ListRootsResult]]:
    """Returns what a client answers that works in these folders."""

    async def answer(context: Any) -> types.ListRootsResult:
        roots = [types.Root(uri=each.as_uri()) for each in folders]  # type: ignore[arg-type]
        return types.ListRootsResult(roots=roots)

    return answer
