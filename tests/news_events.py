"""What agents may hear of, and the events at which they do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_inputs import recorded
from hives import write_lines

from queenbee import Hive

Ask = Callable[..., dict[str, Any] | None]
Hear = Callable[..., list[str]]

OPPORTUNITIES = {"claude/prompt": "UserPromptSubmit", "claude/post-bash": "PostToolUse"}


def hive_of(tree: Path, droid: str, **more: Any) -> Hive:
    return Hive.open(tree, droid=droid, env={"QUEEN_DURABILITY": "buffered"}, **more)


def send(tree: Path, subject: str, *, to: str = "tester", by: str = "reviewer", **more: Any) -> str:
    return hive_of(tree, by).messages.send(to, "The body.", subject=subject, **more)[0].id


def issues(tree: Path, *rows: dict[str, Any]) -> None:
    begun = {"status": "open", "created_at": "2024-12-14T10:00:00Z"}
    write_lines(tree / ".beads" / "issues.jsonl", *({**begun, **row} for row in rows))


def stop(ask: Ask, tree: Path, *, droid: str = "tester", **changes: Any) -> str:
    answer = ask(recorded("claude/stop", tree, **changes), QUEEN_DROID=droid)
    if answer is None:
        return ""
    assert answer["decision"] == "block"
    return str(answer["reason"])
