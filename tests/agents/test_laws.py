"""The law of every part: what it adds to any text, it takes out again to the byte."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from queenbee.agents import cursor, gemini
from queenbee.agents.files.allow_rules import AllowRules
from queenbee.agents.files.hook_entries import HookEntries
from queenbee.agents.files.json_member import JsonMember
from queenbee.agents.files.marked_blocks import Marked, MarkedToml
from queenbee.agents.files.writable_roots import WritableRoots
from queenbee.documents.json_text import loads
from queenbee.errors import QueenError

pytestmark = pytest.mark.slow

GAPS = st.sampled_from(["", "", " ", "\n", "\r\n", "// c, }\n", '/* " ] */', "\n  // x\n  "])
HANDLERS = st.sampled_from(['{"command": "x"}', '{"matcher": "*", "hooks": []}', "1", "null"])


@st.composite
def settings(draw: st.DrawFn) -> str:
    """Settings with hooks and servers of others, comments, and trailing commas, or none of it."""

    def joined(items: list[str], brackets: str) -> str:
        gaps = [f"{draw(GAPS)}{item}{draw(GAPS)}" for item in items]
        trailing = f",{draw(GAPS)}" if items and draw(st.booleans()) else ""
        return brackets[0] + ",".join(gaps) + trailing + draw(GAPS) + brackets[1]

    def member(key: str, value: str) -> str:
        return f'"{key}"{draw(GAPS)}:{draw(GAPS)}{value}'

    def entries(event: str) -> str:
        return member(event, joined(draw(st.lists(HANDLERS, max_size=2)), "[]"))

    names = draw(st.lists(st.sampled_from(["preToolUse", "BeforeTool", "Stop"]), unique=True))
    parts = []
    for key in draw(st.permutations(["hooks", "mcpServers", "permissions", "a"]))[
        : draw(st.integers(0, 4))
    ]:
        if key == "hooks":
            parts.append(member(key, joined([entries(name) for name in names], "{}")))
        elif key == "mcpServers":
            parts.append(member(key, joined(draw(st.sampled_from([[], ['"x": {}']])), "{}")))
        elif key == "permissions":
            rules = joined(draw(st.lists(st.sampled_from(['"x"', '"y(z:*)"']))), "[]")
            parts.append(member(key, joined([member("allow", rules)][len(rules) % 2 :], "{}")))
        else:
            parts.append(member(key, draw(st.sampled_from(["1", '"//"', "[1,]", '{"b": 2}']))))
    return draw(GAPS) + joined(parts, "{}") + draw(GAPS)


PARTS: list[Any] = [
    HookEntries("f", cursor.groups("queen-hook"), comments=True, versioned=True),
    HookEntries("f", gemini.groups("queen-hook"), comments=True),
    JsonMember("f", "mcpServers", {"command": "queen", "args": ["mcp"]}, comments=True),
    AllowRules("f", ("permissions", "allow"), ["Bash(queen:*)", "mcp__queenbee__*"], comments=True),
]


@given(settings(), st.permutations(PARTS))
def test_settings_are_restored_whatever_is_added_in_which_order(
    text: str, parts: list[Any]
) -> None:
    cursors, geminis, *_ = PARTS
    parts = [part for part in parts if part is not (geminis if len(text) % 2 else cursors)]
    added = text
    for part in parts:
        added = part.added(added)
        assert part.added(added) == added
    loads(added, comments=True)
    for part in reversed(parts):
        added = part.removed(added)
    assert added == text


LINES = st.lists(
    st.sampled_from(["", "text", "# q", "<!-- other -->", "é\u2028", "  indented"]), max_size=4
)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_section_leaves_no_trace(lines: list[str], newline: str, ends: bool) -> None:
    part = Marked("f", "section", "<!-- q: begin (x) -->", "one\ntwo", "<!-- q: end -->")
    text = newline.join(lines) + (newline if ends else "")
    added = part.added(text)
    assert part.added(added) == added
    assert part.removed(added) == text


STATE = '[hooks.state]\n\n[hooks.state."/x/hooks.json:stop:0:0"]\ntrusted_hash = "1"\n'


def test_what_codex_writes_into_our_block_is_all_that_stays_of_it() -> None:
    """It adds tables of its own before the mark at the end."""
    part = WritableRoots("f", ["/state"])
    for text in (None, "a = 1\n", "a = 1\n\n[b]\nc = 2\n"):
        added = part.added(text)
        end = added.index("# <<<")
        rewritten = f"{added[:end]}\n{STATE}{added[end:]}"
        left = part.removed(rewritten)
        assert left is not None
        assert left.strip() == f"{text or ''}\n{STATE}".strip().replace("\n\n\n", "\n\n")
        assert part.removed(part.added(left)) == left
        assert tomllib.loads(left) == tomllib.loads(f"{text or ''}\n{STATE}")


TABLES = st.lists(
    st.sampled_from(
        [
            "a = 1",
            "# a comment",
            "[b]",
            "c = [1, # x\n 2]",
            "[sandbox_workspace_write]",
            "writable_roots = ['/x', '/y']",
            'writable_roots = [\n  "]", # ]\n]',
            'd = """\n[sandbox_workspace_write]\n"""',
            "",
        ]
    ),
    max_size=6,
)


@given(TABLES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_tables_and_folders_are_restored_or_refused(
    lines: list[str], newline: str, ends: bool
) -> None:
    text = "\n".join(lines).replace("\n", newline) + (newline if ends else "")
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    server = MarkedToml("f", "server", "# >>> q >>>", "[mcp_servers.q]\nx = 1", "# <<< q <<<")
    roots = WritableRoots("f", ["/state", '/be"ads'])
    try:
        added = roots.added(server.added(text))
    except QueenError:
        return
    after = tomllib.loads(added)
    assert after.pop("mcp_servers") == {"q": {"x": 1}}
    ours = after["sandbox_workspace_write"].pop("writable_roots")
    table = before.get("sandbox_workspace_write", {})
    assert ours == ["/state", '/be"ads', *table.pop("writable_roots", [])]
    after.setdefault("sandbox_workspace_write", {})
    assert after == {**before, "sandbox_workspace_write": table}
    restored = server.removed(roots.removed(added))
    assert restored == text
