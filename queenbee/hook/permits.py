"""Permits: what lets a further edit pass without asking the hive again. ADR 0044.

The full way (`editing`) decides. Once it has let an edit pass, `permitting` notes the file, and all
that the decision rested on. Here is only looked whether each of these is as it was: then the full
way would decide the same. In doubt, it is asked. No pattern is read here: a grant that is newer
than the decision must be the plain name of another file.

Such an edit loads this module and little more, so it does without `typing` and `dataclasses`.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping, Sequence

from queenbee.hook.events import BEFORE_EDIT, COPILOT, Event
from queenbee.store.droids.liveness import is_running
from queenbee.store.memory import sqlite
from queenbee.version import __version__

FOLDER = "queenbee-permits"
"""In the git directory of a worktree; a file for each session."""
NOTED_EVERY_MS = 30_000
"""How often it is noted that a session is at work."""
LOOKED_EVERY_S = 60
"""How often it is looked who else changes a file, in other worktrees."""
_VARIABLES = ("BEADS_", "COPILOT_", "FACTORY_", "GIT_", "HOME", "PG", "QUEEN_", "XDG_")
"""How the names begin of variables that a decision may depend on."""
_MOST_GRANTS = 200
"""Newer grants that are looked at one by one."""
_FAULTS = (AttributeError, KeyError, OSError, TypeError, ValueError, sqlite.Error)
_STATE = """
SELECT key, value FROM meta WHERE key IN
    ('fold', 'born', 'born reservations', 'arrivals reservations') UNION ALL
SELECT count(*), max(seq) FROM lines WHERE kind = 'reservations' AND loose != 0 UNION ALL
SELECT schema_version, user_version FROM pragma_schema_version, pragma_user_version
"""
_LEDGER = """
SELECT value, is_whole, archive, inode, offset, changed_ns, due_offset, due_ns
FROM ledgers JOIN meta ON key = 'change reservations' WHERE path = ? AND kind = 'reservations'
"""
_NEWER = f'SELECT pattern FROM "records reservations" WHERE change > ? LIMIT {_MOST_GRANTS + 1}'  # noqa: S608

Entry = tuple[str, int, int, int]
"""The path of a file, the memory's last change of a reservation when it was permitted, that
instant, and how long it is permitted, both in ms since 1970."""


class Permit:
    """What a session may edit, and what that rests on."""

    def __init__(
        self,
        places: dict[str, str],
        rests_on: dict[str, list[str]],
        basis: dict[str, object] | None = None,
        files: dict[str, Entry] | None = None,
    ) -> None:
        self.places = places
        """`root`: the folder of `.beads`; `memory` (a URI), `ledger`; `session` ("" if the user
        gave it a name) and `presence`: files to touch; `told`: the file of what was told of other
        worktrees, "" if there are none; `process`: that of the agent.
        """
        self.rests_on = rests_on
        """The files that must be the same: as such (`kinds`), unwritten (`stamps`) or with the
        same content (`texts`)."""
        self.basis: dict[str, object] = basis or {}
        """How all of this was before the files were permitted."""
        self.files: dict[str, Entry] = files or {}
        """By absolute names."""


class Sight:
    """What was seen before anything was decided."""

    def __init__(self, path: str, tree: str) -> None:
        self.path = path
        """Where the session's permit is, or will be."""
        self.tree = tree
        self.at_ms: int = time.time_ns() // 1_000_000
        self.permit: Permit | None = None
        self.basis: dict[str, object] = {}
        """As that of the permit, but now; empty if not all of it could be seen."""
        self.change = -1
        self.newer: Sequence[object] = ()
        """The patterns of reservations that changed since the edit's files were permitted."""


def look(event: Event, env: Mapping[str, str]) -> Sight | None:
    """Returns what there is to see before an edit; None if no permit can be for such an event."""
    strange = event.subagent is not None or event.agent == COPILOT or env.get("BEADS_DIR")
    if event.kind != BEFORE_EDIT or not event.session or not event.files or strange:
        return None
    name = "".join(char for char in event.session if char.isascii() and char.isalnum())[:100]
    tree = _tree_of(event.files[0])
    if tree is None or not name:
        return None
    try:
        git_dir = os.path.join(tree, ".git")
        if os.path.isfile(git_dir):
            git_dir = os.path.join(tree, text_of(git_dir).removeprefix("gitdir:").strip())
        sight = Sight(os.path.join(git_dir, FOLDER, f"{name}.json"), tree)
    except _FAULTS:
        return None
    try:
        sight.permit = Permit(**json.loads(text_of(sight.path)))
        sight.basis = _basis(sight, sight.permit, event, env)
    except _FAULTS:
        sight.basis = {}
    return sight


def stands(sight: Sight, event: Event) -> bool:
    """Returns whether the session may edit the files, as was decided before. If so, it is noted
    that it is at work.
    """
    permit = sight.permit
    try:
        if permit is None or not sight.basis or permit.basis != sight.basis:
            return False
        entries = [permit.files[file] for file in event.files]
        paths = [path for path, *_ in entries]
        return (
            len(sight.newer) <= _MOST_GRANTS
            and all(_is_elsewhere(pattern, paths) for pattern in sight.newer)
            and all(_is_in_place(sight, permit, file) for file in event.files)
            and all(begin <= sight.at_ms <= end for _, _, begin, end in entries)
            and _was_told(permit, sight.at_ms, paths)
            and _is_at_work(permit, sight.at_ms)
        )
    except _FAULTS:
        return False


def is_plain(path: str) -> bool:
    """Returns whether a path has letters, digits, `_`, `-` and dots alone: as a pattern, it covers
    itself, and has no other spelling but for its case.
    """
    letters = path.replace("/", "").replace(".", "").replace("_", "").replace("-", "")
    return path.isascii() and letters.isalnum() and all(x.strip(".") for x in path.split("/"))


def _is_elsewhere(pattern: object, paths: Sequence[str]) -> bool:
    named = pattern.lower() if isinstance(pattern, str) and is_plain(pattern) else None
    return named is not None and all(named != path.lower() for path in paths)


def _is_in_place(sight: Sight, permit: Permit, file: str) -> bool:
    """Returns whether a file is behind no link, and no repository or hive came between."""
    root, tree, folder = permit.places["root"], sight.tree, os.path.dirname(file)
    while len(folder) > len(tree):
        beside = root + folder[len(tree) :]
        if os.path.lexists(f"{folder}/.git") or os.path.lexists(f"{beside}/.beads"):
            return False
        folder = os.path.dirname(folder)
    return folder == tree and os.path.realpath(file) == file


def _was_told(permit: Permit, now_ms: int, paths: Sequence[str]) -> bool:
    """Returns whether it was looked a moment ago who else changes the files."""
    if not permit.places["told"]:
        return True
    looked_s = {path: at_s for path, (at_s, _) in json.loads(text_of(permit.places["told"]))}
    return all(0 <= now_ms / 1000 - looked_s[path] < LOOKED_EVERY_S for path in paths)


def _is_at_work(permit: Permit, now_ms: int) -> bool:
    """Notes that the session is at work, unless its agent has ended."""
    if not is_running(permit.places["process"]):
        return False
    session, now = permit.places["session"], (now_ms * 1_000_000,) * 2
    if session and abs(now_ms - os.lstat(session).st_mtime_ns // 1_000_000) >= NOTED_EVERY_MS:
        os.utime(session, ns=now, follow_symlinks=False)
    os.utime(permit.places["presence"], ns=now, follow_symlinks=False)
    return True


# What a permit rests on.


def _basis(sight: Sight, permit: Permit, event: Event, env: Mapping[str, str]) -> dict[str, object]:
    given = sorted(pair for pair in env.items() if pair[0].startswith(_VARIABLES))
    about = [__version__, event.session, event.agent, sight.tree, zlib.crc32(repr(given).encode())]
    found: dict[str, object] = {"about": about}
    for name, see in (("kinds", _kind), ("stamps", stamp), ("texts", text_of)):
        found[name] = {path: see(path) for path in permit.rests_on[name]}
    entries = [entry for file in event.files if (entry := permit.files.get(file))]
    db = sqlite.connect(permit.places["memory"], uri=True, timeout=0, isolation_level=None)
    try:
        db.execute("BEGIN")
        state = [list(row) for row in db.execute(_STATE)]
        row = db.execute(_LEDGER, (permit.places["ledger"],)).fetchone()
        last = min((change for _, change, _, _ in entries), default=row[0])
        sight.newer = [pattern for (pattern,) in db.execute(_NEWER, (last,))]
    finally:
        db.close()
    sight.change, is_whole, archive, inode, *ends = row
    # As it was before the last write, or as that has left it.
    known = [[inode, *ends[:2]], *([[inode, *ends[2:]]] if ends[3] else ())]
    if not is_whole or stamp(permit.places["ledger"]) not in known:
        raise ValueError("the ledger has lines that the memory has not taken in")
    return {**found, "memory": state, "archive": archive}


def _tree_of(file: str) -> str | None:
    folder = file
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return None


def text_of(path: str) -> str:
    """Returns the content of a small file of ours or of git's."""
    with open(path, encoding="utf-8") as file:
        return file.read(1 << 20)


def stamp(path: str) -> list[int]:
    """Returns what changes whenever a file does; nothing if there is none."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def _kind(path: str) -> list[int]:
    """Returns what changes if a file is replaced, or made or removed."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [status.st_ino, status.st_mode]
