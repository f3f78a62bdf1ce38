"""What docs/agents.md promises of files, and code without it.

Each check passes with the code as it is and fails with one line of it broken.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import git
from mutants import mutant

from queenbee.agents import setup
from queenbee.agents.files import edits, json_text, marked, writable_roots
from queenbee.errors import QueenError
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


def check_that_what_cannot_be_restored_is_refused(module: types.ModuleType, folder: Path) -> None:
    (folder / "file").write_text("theirs\n")
    (edit,) = module.gathered([Forgetful(folder / "file", loses="theirs\n")])
    assert refused(edit.set_up)


def check_that_a_read_only_file_stops_every_write(module: types.ModuleType, folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).write_text("theirs\n")
    (folder / "two").chmod(0o444)
    found = module.gathered([Forgetful(folder / name) for name in ("one", "two")])
    for edit in found:
        edit.set_up()
    assert refused(lambda: module.write(found, None))
    assert (folder / "one").read_text() == "theirs\n"


def check_that_a_failed_write_restores_the_others(module: types.ModuleType, folder: Path) -> None:
    (folder / "one").write_text("theirs\n")
    (folder / "two").mkdir()
    first, second = (Forgetful(folder / "one"), Forgetful(folder / "three"))
    found = module.gathered([first, second])
    for edit in found:
        edit.set_up()
    found[1].real = str(folder / "two")  # A folder: it cannot be replaced by a file.
    refused(lambda: module.write(found, None))
    assert (folder / "one").read_text() == "theirs\n"


def check_a_section(module: types.ModuleType, folder: Path) -> None:
    part = module.Marked("f", "section", "<!-- q: begin (x) -->", "body", "<!-- q: end -->")
    for text in ("", "a", "a\n", "a\n\n", "a\r\n", "a\r\nb"):
        added = part.added(text)
        assert "body" in added
        assert part.removed(added) == text
    assert part.removed(part.added("a") + "\nmore") == "a\nmore"


def check_comments(module: types.ModuleType, folder: Path) -> None:
    for text in ('{\n  "a": 1 // a\n}', '{ // c\n  "a": 1, // a\n}', '{"a": 1 /* b */}'):
        root = module.Container(text, 0)
        changed = module.insert(text, root, "ours", {"b": 2}, 1)
        assert module.loads(changed, comments=True) == {"a": 1, "ours": {"b": 2}}
        root = module.Container(changed, 0)
        index = [item.key for item in root.items].index("ours")
        assert module.cut(changed, [root], index) == text


def check_that_a_comment_stays(module: types.ModuleType, folder: Path) -> None:
    text = '{\n  "a": 1 // about a\n}'
    changed = module.insert(text, module.Container(text, 0), "ours", 2, 1)
    assert '"a": 1 // about a\n' in changed


def check_folders(module: types.ModuleType, folder: Path) -> None:
    part = module.WritableRoots("f", ["/state", "/beads"])
    for text in (
        None,
        "a = 1",
        "[sandbox_workspace_write]",
        "[sandbox_workspace_write]\nx = 1\n",
        "[sandbox_workspace_write]\nwritable_roots = ['/x']\n",
    ):
        assert part.removed(part.added(text)) == text
    other = module.WritableRoots("f", ["/other"])
    both = other.added(part.added("a = 1\n"))
    assert other.removed(part.removed(both)) == "a = 1\n"


def check_whose_guard_it_is(module: types.ModuleType, folder: Path) -> None:
    git(folder, "init", "-q")
    found = module.HookFolder(str(folder))
    module.install(found)
    module.install_for_setup(found)
    assert not found.of_setup
    module.uninstall(found)
    module.install_for_setup(found)
    module.install_for_setup(found)
    assert found.of_setup


def check_that_a_users_guard_stays(module: types.ModuleType, folder: Path) -> None:
    git(folder, "init", "-q")
    found = hooks.HookFolder(str(folder))
    hooks.install(found)
    place = module.place_of(str(folder), {}, user=False, undo=True)
    module.Setup(place, str(folder), [], undo=True).write()
    assert all(each.state == hooks.INSTALLED for each in hooks.states(found))


MUTANTS = [
    (
        hooks,
        "of_setup=hooks.of_setup or _read(hooks.runner) is None",
        "of_setup=True",
        check_whose_guard_it_is,
    ),
    (
        hooks,
        "of_setup=hooks.of_setup or _read(hooks.runner) is None",
        "of_setup=_read(hooks.runner) is None",
        check_whose_guard_it_is,
    ),
    (
        setup,
        "            if undo and not self.guard.of_setup:",
        "            if False:",
        check_that_a_users_guard_stays,
    ),
    (
        edits,
        "        if _without(self.parts, text) != _without(self.parts, self.text):",
        "        if False:",
        check_that_what_cannot_be_restored_is_refused,
    ),
    (
        edits,
        "            if not os.stat(path).st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):",
        "            if not os.access(path, os.R_OK):",
        check_that_a_read_only_file_stops_every_write,
    ),
    (
        edits,
        "                _put(edit.real, edit.before)",
        "                pass",
        check_that_a_failed_write_restores_the_others,
    ),
    (
        marked,
        'ending = newline if not text or text.endswith("\\n") else ""',
        "ending = newline",
        check_a_section,
    ),
    (
        marked,
        "            return before + rest",
        "            return before.removesuffix(ours) + rest",
        check_a_section,
    ),
    (
        json_text,
        "    if _has_comment(text, last.end, container.close):",
        "    if False:",
        check_that_a_comment_stays,
    ),
    (
        json_text,
        "    if _is_among_comments(text, container, index):",
        "    if False:",
        check_comments,
    ),
    (
        writable_roots,
        "        if self._block.added(rest) == rest:",
        "        if False:",
        check_folders,
    ),
    (
        writable_roots,
        "for each in _items(text, at) if",
        "for each in [at] if",
        check_folders,
    ),
]


@pytest.mark.parametrize(("module", "old", "new", "check"), MUTANTS)
def test_a_broken_line_is_noticed(
    module: types.ModuleType,
    old: str,
    new: str,
    check: Callable[[types.ModuleType, Path], None],
    tmp_path: Path,
) -> None:
    for name in ("sound", "broken"):
        (tmp_path / name).mkdir()
    check(module, tmp_path / "sound")
    with pytest.raises((AssertionError, OSError, QueenError, KeyError, ValueError)):
        check(mutant(module, old, new), tmp_path / "broken")
