"""What docs/agents.md promises of the files that setup writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hives import git

from queenbee.agents import codex, setup
from queenbee.agents.files import file_edits, json_text, marked_blocks, writable_roots
from queenbee.agents.files.hook_entries import HookEntries
from queenbee.errors import Conflict, QueenError
from queenbee.git import hooks


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


def test_a_read_only_file_stops_every_write(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text("theirs\n")
    (tmp_path / "two").chmod(0o444)
    found = file_edits.gathered([Forgetful(tmp_path / name) for name in ("one", "two")])
    for edit in found:
        edit.set_up()
    assert refused(lambda: file_edits.write(found, None))
    assert (tmp_path / "one").read_text() == "theirs\n"


def test_a_failed_write_restores_the_others(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("theirs\n")
    (tmp_path / "two").mkdir()
    first, second = (Forgetful(tmp_path / "one"), Forgetful(tmp_path / "three"))
    found = file_edits.gathered([first, second])
    for edit in found:
        edit.set_up()
    found[1].real = str(tmp_path / "two")  # A folder: it cannot be replaced by a file.
    refused(lambda: file_edits.write(found, None))
    assert (tmp_path / "one").read_text() == "theirs\n"


def test_a_section_is_taken_out_without_a_trace() -> None:
    part = marked_blocks.Marked("f", "section", "<!-- q: begin (x) -->", "body", "<!-- q: end -->")
    for text in ("", "a", "a\n", "a\n\n", "a\r\n", "a\r\nb"):
        added = part.added(text)
        assert "body" in added
        assert part.removed(added) == text
    assert part.removed(part.added("a") + "\nmore") == "a\nmore"


def test_what_is_added_among_comments_is_taken_out_without_a_trace() -> None:
    for text in ('{\n  "a": 1 // a\n}', '{ // c\n  "a": 1, // a\n}', '{"a": 1 /* b */}'):
        root = json_text.Container(text, 0)
        changed = json_text.insert(text, root, "ours", {"b": 2}, 1)
        assert json_text.loads(changed, comments=True) == {"a": 1, "ours": {"b": 2}}
        root = json_text.Container(changed, 0)
        index = [item.key for item in root.items].index("ours")
        assert json_text.cut(changed, [root], index) == text


def test_a_comment_stays_with_its_line() -> None:
    text = '{\n  "a": 1 // about a\n}'
    changed = json_text.insert(text, json_text.Container(text, 0), "ours", 2, 1)
    assert '"a": 1 // about a\n' in changed


def test_folders_are_taken_out_without_a_trace() -> None:
    part = writable_roots.WritableRoots("f", ["/state", "/beads"])
    for text in (
        None,
        "a = 1",
        "[sandbox_workspace_write]",
        "[sandbox_workspace_write]\nx = 1\n",
        "[sandbox_workspace_write]\nwritable_roots = ['/x']\n",
    ):
        assert part.removed(part.added(text)) == text
    other = writable_roots.WritableRoots("f", ["/other"])
    both = other.added(part.added("a = 1\n"))
    assert other.removed(part.removed(both)) == "a = 1\n"


def test_a_guard_of_the_user_is_not_taken_for_one_of_setup(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    found = hooks.HookFolder(str(tmp_path))
    hooks.install(found)
    hooks.install_for_setup(found)
    assert not found.of_setup
    hooks.uninstall(found)
    hooks.install_for_setup(found)
    hooks.install_for_setup(found)
    assert found.of_setup


def test_a_users_guard_stays(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    found = hooks.HookFolder(str(tmp_path))
    hooks.install(found)
    place = setup.place_of(str(tmp_path), {}, user=False, undo=True)
    setup.Setup(place, str(tmp_path), [], undo=True).write()
    assert all(each.state == hooks.INSTALLED for each in hooks.states(found))


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
