"""Moving an existing hive to the branch of the remote alone, and back: `queen sync setup`.

The ledgers leave the index of the code's branch and are ignored there; their files stay where they
are. Each step can be repeated, so a setup that was killed is finished by the next. ADR 0029.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from queenbee.errors import NotFound
from queenbee.git.remote.syncing import Synced, sync
from queenbee.git.run import git, without_programs
from queenbee.store import safe_open
from queenbee.store.settings import FILE_NAME
from queenbee.store.settings_file.changing_text import with_values
from queenbee.store.whole_files import read_own, write_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.services.hive import Services

_RULES = b"""\
# queen sync setup: the branch of the remote has these, not the branches of the code
/queen_*.jsonl
/archive/queen_*.jsonl
"""
_TRACKER = b"/issues.jsonl\n"
"""The ledger of issues has its rows: the file is made of that, where no other program owns it."""
_OURS = re.compile(r"(?:archive/)?queen_[^/]+\.jsonl")


@dataclass
class Moved:
    """What a setup changed: files of `.beads/`, and ledgers in the index of the main worktree."""

    synced: Synced | None
    files: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    """Ledgers and segments that are no longer in the index."""
    tracked: list[str] = field(default_factory=list)
    """Those that are in it again."""

    def to_dict(self) -> dict[str, object]:
        """Returns the fields for `--json`."""
        return asdict(self)


def set_up(hive: Services) -> Moved:
    """Moves the ledgers to the branch of the remote alone. Raises `Unreachable`; nothing is changed
    then.
    """
    # 1. The remote has everything before anything else changes.
    moved = Moved(sync(hive))
    _heal(hive)
    # 2. Ignored before they leave the index, so that no `git add` in between brings them back.
    _replace(hive, moved, ".gitignore", lambda text: _with_rules(text, is_owned=_is_owned(hive)))
    _set(hive, moved, "branch")
    moved.untracked = _tracked(hive)
    if moved.untracked:
        names = "".join(f"{each}\0" for each in moved.untracked).encode(errors="surrogateescape")
        _git(hive, "update-index", "--force-remove", "-z", "--stdin", stdin=names)
    # 3. A new file would be missing in `git commit -- .beads`.
    _stage_new(hive, moved.files)
    return moved


def undo(hive: Services) -> Moved:
    """Moves them back: to the index of the main worktree, for the user to commit."""
    moved = Moved(None)
    _heal(hive)
    _set(hive, moved, None)
    _replace(hive, moved, ".gitignore", _without_rules)
    if moved.files:
        beads = hive.layout.beads_dir
        names = [name for name in _files(beads) if _is_moved(hive, name)]
        moved.tracked = _stage_new(hive, [os.path.join(beads, name) for name in sorted(names)])
        for path in moved.files:
            if not os.path.lexists(path):
                _git(hive, "update-index", "--force-remove", "--", _in_tree(hive, path))
    return moved


def _heal(hive: Services) -> None:
    """Gives the ledgers every line of the journals: git may have removed some with a checkout."""
    lost = [kind for kind in hive.kinds() if hive.engine.memory.lacking(kind)]
    if lost:
        with hive.transaction() as tx:
            for kind in lost:
                tx.touch(kind)


def _files(beads: str) -> list[str]:
    archive = os.path.join(beads, "archive")
    inner = os.listdir(archive) if os.path.isdir(archive) else []
    return [*os.listdir(beads), *(f"archive/{name}" for name in inner)]


def _tracked(hive: Services) -> list[str]:
    beads = os.path.basename(hive.layout.beads_dir)
    said = _git(hive, "ls-files", "-z", "--", beads).decode(errors="surrogateescape")
    names = [name for name in said.split("\0") if name]
    return [name for name in names if _is_moved(hive, name.removeprefix(f"{beads}/"))]


def _is_owned(hive: Services) -> bool:
    return hive.tracker().is_owned()


def _is_moved(hive: Services, name: str) -> bool:
    """Returns whether a file of `.beads/` is moved: a ledger, its archive, or the tracker."""
    return bool(_OURS.fullmatch(name)) or (name == "issues.jsonl" and not _is_owned(hive))


def _without_rules(text: bytes) -> bytes:
    return text.replace(_RULES + _TRACKER, b"").replace(_RULES, b"")


def _with_rules(text: bytes, *, is_owned: bool) -> bytes:
    """Returns a `.gitignore` with our rules; those of an earlier version lack the tracker."""
    rules = _RULES if is_owned else _RULES + _TRACKER
    if rules in text:
        return text
    return text.replace(_RULES, rules) if _RULES in text else _line(text) + rules


def _in_tree(hive: Services, path: str) -> str:
    return os.path.relpath(path, hive.layout.root)


def _stage_new(hive: Services, files: list[str]) -> list[str]:
    """Adds those files to the index that git neither tracks nor ignores; returns their names."""
    if not files:
        return []
    names = [_in_tree(hive, path) for path in files]
    others = _git(hive, "ls-files", "-z", "--others", "--exclude-standard", "--", *names)
    if others:
        _git(hive, "update-index", "--add", "-z", "--stdin", stdin=others)
    return [name for name in others.decode(errors="surrogateescape").split("\0") if name]


def _git(hive: Services, *arguments: str, stdin: bytes = b"") -> bytes:
    root = hive.layout.root
    config = {**without_programs(root), "core.hooksPath": os.devnull}
    return git(*arguments, cwd=root, stdin=stdin, repository={}, config=config)


def _replace(hive: Services, moved: Moved, name: str, change: Callable[[bytes], bytes]) -> None:
    path = os.path.join(hive.layout.beads_dir, name)
    try:
        before = read_own(path)
    except NotFound:
        before = b""
    after = change(before)
    if after == before:
        return
    if after or name == FILE_NAME:
        write_document(path, after)
    else:
        safe_open.unlink(path)
    moved.files.append(path)


def _set(hive: Services, moved: Moved, ledgers: str | None) -> None:
    """Sets where the ledgers are."""

    def change(text: bytes) -> bytes:
        return with_values(text.decode(), {"sync.ledgers": ledgers}).encode()

    _replace(hive, moved, FILE_NAME, change)


def _line(text: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + b"\n"
