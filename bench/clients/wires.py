"""The four protocols that clients speak to a model: what an answer looks like in each of them.

Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini. Each function turns one
answer of a script into the whole body and into the events of a stream.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Events = list[tuple[str | None, Any]]


@dataclass(frozen=True)
class Call:
    """One call of a tool. With `text`, a free-form one, which only Responses has."""

    tool: str
    args: Json = field(default_factory=dict)
    namespace: str | None = None
    text: str | None = None


Said = str | Call | list[Call]
"""What the model says: a text that ends its turn, or calls."""


def _id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:20]


def _calls(said: Said) -> list[Call]:
    return [] if isinstance(said, str) else said if isinstance(said, list) else [said]


def anthropic(said: Said) -> tuple[Json, Events]:
    """Returns an answer of `/v1/messages`."""
    blocks: list[Json] = [
        {"type": "tool_use", "id": _id("toolu_"), "name": call.tool, "input": call.args}
        for call in _calls(said)
    ] or [{"type": "text", "text": said}]
    stop = "end_turn" if isinstance(said, str) else "tool_use"
    whole = {"id": _id("msg_"), "type": "message", "role": "assistant", "model": "scripted"}
    whole |= {"content": blocks, "stop_reason": stop, "stop_sequence": None}
    whole |= {"usage": {"input_tokens": 10, "output_tokens": 5}}
    begun = {**whole, "content": [], "stop_reason": None}
    events: list[Json] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(blocks):
        if "text" in block:
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            written = json.dumps(block["input"])
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": written}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ended = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return whole, [(event["type"], event) for event in events]


def _item(call: Call) -> Json:
    item: Json = {"id": _id("fc_"), "call_id": _id("call_"), "name": call.tool}
    item["status"] = "completed"
    if call.text is not None:
        return {**item, "type": "custom_tool_call", "input": call.text}
    item |= {"type": "function_call", "arguments": json.dumps(call.args)}
    return item | ({"namespace": call.namespace} if call.namespace else {})


def responses(said: Said) -> tuple[Json, Events]:
    """Returns an answer of `/v1/responses`."""
    text = {"type": "output_text", "text": said, "annotations": []}
    message = {"type": "message", "id": _id("msg_"), "role": "assistant", "content": [text]}
    items = [_item(call) for call in _calls(said)] or [{**message, "status": "completed"}]
    usage: Json = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    usage |= {"input_tokens_details": {"cached_tokens": 0}}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    begun = {"id": _id("resp_"), "object": "response", "created_at": int(time.time())}
    begun |= {"model": "scripted", "status": "in_progress", "output": []}
    whole = {**begun, "status": "completed", "output": items, "usage": usage}
    events: list[Json] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(items):
        added = {"type": "response.output_item.added", "output_index": index}
        events.append({**added, "item": {**item, "status": "in_progress"}})
        if item["type"] == "message":
            delta = {"type": "response.output_text.delta", "item_id": item["id"], "delta": said}
            events.append({**delta, "output_index": index, "content_index": 0})
        events.append({**added, "type": "response.output_item.done", "item": item})
    events.append({"type": "response.completed", "response": whole})
    return whole, [(e["type"], {**e, "sequence_number": n}) for n, e in enumerate(events)]


def chat(said: Said) -> tuple[Json, Events]:
    """Returns an answer of `/v1/chat/completions`."""
    calls = [
        {"index": index, "id": _id("call_"), "type": "function"}
        | {"function": {"name": call.tool, "arguments": json.dumps(call.args)}}
        for index, call in enumerate(_calls(said))
    ]
    message: Json = {"role": "assistant", "content": None if calls else said}
    message |= {"tool_calls": calls} if calls else {}
    base = {"id": _id("chatcmpl-"), "created": int(time.time()), "model": "scripted"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    end = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": end}
    whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunk = {**base, "object": "chat.completion.chunk"}
    first = {"index": 0, "delta": message, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": end}
    stream = [{**chunk, "choices": [first]}, {**chunk, "choices": [last], "usage": usage}]
    return whole, [(None, each) for each in (*stream, "[DONE]")]


def gemini(said: Said) -> tuple[Json, Events]:
    """Returns an answer of `:generateContent` and `:streamGenerateContent`."""
    parts: list[Json] = [
        {"functionCall": {"name": call.tool, "args": call.args, "id": _id("")}}
        for call in _calls(said)
    ] or [{"text": said}]
    content = {"role": "model", "parts": parts}
    whole = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    whole = {**whole, "usageMetadata": counts, "modelVersion": "scripted"}
    return whole, [(None, whole)]


def wire_of(path: str) -> Callable[[Said], tuple[Json, Events]] | None:
    """Returns the protocol that a path belongs to, or None."""
    for end, wire in (("/messages", anthropic), ("/responses", responses)):
        if path.endswith(end):
            return wire
    if path.endswith("/chat/completions"):
        return chat
    return gemini if path.endswith("enerateContent") else None


class Request:
    """What a client sent: the same questions for all protocols."""

    def __init__(self, body: Json) -> None:
        self.body = body
        self.text = "\n".join(_strings(body))
        """Everything that the model reads, also the descriptions of tools."""
        items = body.get("messages") or body.get("input") or body.get("contents") or []
        self.items: list[Any] = items if isinstance(items, list) else [items]

    @property
    def tools(self) -> list[str]:
        """The names of the tools that are offered."""
        found = list(self.body.get("tools") or [])
        for item in self.items:  # Responses may add tools with a message.
            if isinstance(item, dict) and isinstance(item.get("tools"), list):
                found += item["tools"]
        return list(_names(found))

    @property
    def talk(self) -> str:
        """The instructions and the conversation, without the descriptions of tools."""
        said = {key: value for key, value in self.body.items() if key != "tools"}
        return "\n".join(_strings(said))

    @property
    def last(self) -> str:
        """What came after the model's last words: results of tools, and what hooks added."""
        newest: list[Any] = []
        for item in reversed(self.items):
            if isinstance(item, dict) and _is_the_models(item):
                break
            newest.insert(0, item)
        return "\n".join(_strings(newest))


def _is_the_models(item: Json) -> bool:
    kinds = ("function_call", "custom_tool_call", "reasoning")
    return item.get("role") in ("assistant", "model") or item.get("type") in kinds


def _names(tools: list[Any], prefix: str = "") -> Iterator[str]:
    for tool in tools:
        inner = tool.get("function") or tool
        nested = tool.get("functionDeclarations") or tool.get("tools")
        if nested:
            yield from _names(nested, f"{tool['name']}." if "name" in tool else "")
        elif "name" in inner:
            yield prefix + inner["name"]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
