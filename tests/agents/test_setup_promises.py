"""What docs/agents.md promises of the files that setup writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from queenbee.agents import codex
from queenbee.agents.files import file_edits, marked_blocks
from queenbee.agents.files.hook_entries import HookEntries
from queenbee.documents import json_text
from queenbee.errors import Conflict, QueenError


class Forgetful:
    """A part that cannot be taken out again."""

    what = "part"

    def __init__(self, path: Path, *, loses: str = "") -> None:
        self.path = str(path)
        self._loses = loses

    def key(self) -> object:
        return self._loses

    def added(self, text: str | None) -> str:
        return (text or "").replace(self._loses, "") + "ours\n"

    def removed(self, text: str | None) -> str | None:
        return None if text in (None, "ours\n") else str(text).removesuffix("ours\n")


def refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except QueenError:
        return True
    return False


def test_what_cannot_be_restored_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("theirs\n")
    (edit,) = file_edits.gathered([Forgetful(tmp_path / "file", loses="theirs\n")])
    assert refused(edit.set_up)


def test_a_comment_stays_with_its_line() -> None:
    text = '{\n  "a": 1 // about a\n}'
    changed = json_text.insert(text, json_text.Container(text, 0), "ours", 2, 1)
    assert '"a": 1 // about a\n' in changed


def test_thousands_of_settings_are_read_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not again for each hook, which took half a minute for 20,000 of them."""
    keys = 500
    text = json.dumps({f"key {number}": {"a": 1} for number in range(keys)}, indent=2)
    part = HookEntries("f", codex.groups("queen-hook"))
    read, once = [0], json_text.Item.__init__

    def counting(self: json_text.Item, *arguments: Any, **more: Any) -> None:
        read[0] += 1
        once(self, *arguments, **more)

    monkeypatch.setattr(json_text.Item, "__init__", counting)
    added = part.added(text)
    assert part.removed(added) == text
    assert read[0] < 8 * keys


def test_hooks_that_another_program_wrote_again_are_taken_out_whole() -> None:
    part = HookEntries("f", codex.groups("queen-hook"))
    for separators in ((",", ":"), (", ", ": ")):
        rewritten = json.dumps(json.loads(part.added(None)), separators=separators)
        assert part.removed(rewritten) is None
        both = json.dumps({"a": 1, **json.loads(part.added(None))}, separators=separators)
        assert json.loads(part.removed(both) or "") == {"a": 1}


def test_a_table_that_is_written_in_one_line_is_named() -> None:
    part = marked_blocks.MarkedToml(
        "f", "server", "# >>> q >>>", "[servers.q]\nx = 1", "# <<< q <<<"
    )
    with pytest.raises(Conflict, match=r"servers = .* in one line") as inline:
        part.added("servers = { other = { x = 2 } }\n")
    assert "[servers.other]" in str(inline.value.hint)
    with pytest.raises(Conflict, match="a table of ours already"):
        part.added("[servers.q]\nx = 2\n")
