"""Clients of `queen mcp`: in this process, or over the standard streams of a real one.

The tests are in `tests/mcp_surface`: a folder `tests/mcp` would be found in place of the SDK.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from hives import COMMAND
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from queenbee.mcp.server import server_of
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
        try:
            async with Client(server_of(workspace), client_info=info, **more) as client:
                return await act(client)
        finally:
            workspace.close()

    return anyio.run(run)


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
