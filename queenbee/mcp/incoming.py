"""What a client sends that is no message: it is mended or answered, so that no client waits on.

The SDK drops a line that it cannot read, and with it a request that somebody waits for. The usual
case is half an emoji, which a model cut in two: an escape such as `\\ud83d` alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:
    from anyio.abc import ObjectSendStream
    from mcp.shared._stream_protocols import ReadStream, WriteStream


async def mend(
    incoming: ReadStream[SessionMessage | Exception],
    outgoing: WriteStream[SessionMessage],
    mended: ObjectSendStream[SessionMessage | Exception],
) -> None:
    """Passes on what a client sends until it ends; what cannot be mended is answered here."""
    async with incoming, mended:
        async for item in incoming:
            if not isinstance(item, Exception):
                await mended.send(item)
                continue
            message = read_again(item)
            if isinstance(message, types.JSONRPCError):
                await outgoing.send(SessionMessage(message))
            else:
                await mended.send(SessionMessage(message))


def read_again(error: Exception) -> types.JSONRPCMessage:
    """Returns the message of a line that could not be read, or else the answer to it."""
    given = _given(error)
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return _answer(None, types.PARSE_ERROR, "this line is not JSON")
    try:
        return types.jsonrpc_message_adapter.validate_python(_text_in(value), by_name=False)
    except ValueError:
        identifier = value.get("id") if isinstance(value, dict) else None
        return _answer(identifier, types.INVALID_REQUEST, "this is not a JSON-RPC message")


def _given(error: Exception) -> Any:
    """Returns the line, or what was in it, that the SDK could not read."""
    errors = getattr(error, "errors", None)
    found = errors(include_url=False) if callable(errors) else []
    return found[0].get("input") if found else None


def _answer(identifier: object, code: int, message: str) -> types.JSONRPCError:
    known = isinstance(identifier, str | int) and not isinstance(identifier, bool)
    error = types.ErrorData(code=code, message=message)
    return types.JSONRPCError(jsonrpc="2.0", id=identifier if known else None, error=error)  # type: ignore[arg-type]


def _text_in(value: Any) -> Any:
    """Returns the value with U+FFFD for what no text may contain."""
    if isinstance(value, str):
        return (
            value
            if value.isascii()
            else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, dict):
        return {_text_in(key): _text_in(each) for key, each in value.items()}
    return [_text_in(each) for each in value] if isinstance(value, list) else value
