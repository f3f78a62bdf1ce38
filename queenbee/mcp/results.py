"""What a client gets: the JSON that the command prints, and what it tells besides."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queenbee.core.json_form import error_document, to_plain
from queenbee.errors import QueenError

_TOOLS = {
    "next": "next",
    "status": "status",
    "claim": "claim",
    "complete": "complete",
    "reserve release": "release",
    "reserve check": "check",
    "reserve list": "status",
    "reserve": "reserve",
    "release": "release",
    "msg send": "send",
    "msg inbox": "inbox",
    "msg thread": "inbox --thread",
    "issue wait": "wait",
    "issue new": "edit",
    "issue edit": "edit",
    "issue list": "show",
    "show": "show",
    "note": "note",
}
"""The commands that are tools, the longer ones first."""
_COMMAND = re.compile(rf"\bqueen ({'|'.join(_TOOLS)})\b([^;]*)")
_OPTION = re.compile(r"(?<=\s)--([a-z][a-z-]*)")


@dataclass(frozen=True)
class Answer:
    """The answer of a tool.

    `texts` are the documents that the command would print: its answer or its refusal, and the
    notices, if there are any. `structured` has the same in one object: `result` or `error`, and
    `notices`.
    """

    texts: list[str]
    structured: dict[str, Any]
    refused: bool


def answered(value: object, notices: Sequence[str]) -> Answer:
    """Returns the answer of a tool that did what it was asked to."""
    plain = to_plain(value)
    return _answer(plain, {"result": plain}, notices, refused=False)


def refused(error: QueenError, notices: Sequence[str]) -> Answer:
    """Returns the answer of a tool that was refused."""
    document = error_document(error)
    told: Any = document["error"]
    if told.get("hint"):
        told["hint"] = in_tools(told["hint"])
    return _answer(document, document, notices, refused=True)


def in_tools(hint: str) -> str:
    """Returns a hint in which commands that are tools have the names and arguments of these."""
    return _COMMAND.sub(lambda found: _as_tool(found[1], found[2]), hint)


def _as_tool(command: str, rest: str) -> str:
    tool = _TOOLS[command]
    return tool + _OPTION.sub(lambda found: found[1].replace("-", "_"), rest)


def document_of(value: object) -> str:
    """Returns the JSON that the command prints for a value."""
    return _dumps(to_plain(value))


def _answer(
    document: object, structured: dict[str, Any], notices: Sequence[str], *, refused: bool
) -> Answer:
    texts = [_dumps(document)]
    if notices:
        texts.append(_dumps({"notices": list(notices)}))
        structured = {**structured, "notices": list(notices)}
    return Answer(texts, _encodable(structured), refused=refused)


def _dumps(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        # A file name that is not valid text. JSON can escape it, the protocol cannot.
        return json.dumps(value, separators=(",", ":"), default=str)
    return text


def _encodable(value: Any) -> Any:
    """Returns the value with escapes for what is not valid text, so that it can be sent."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(each) for each in value]
    return value if isinstance(value, int | float | bool | None) else str(value)
