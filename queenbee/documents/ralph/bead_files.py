"""The files of Ralph beads: found by id, changed in place, and moved so that no crash loses one.

A crash during a move leaves both files, and they count as one bead: the copy in `completed/` wins,
unless its status says that it is not completed. Other two files with one id are somebody's, and
stay. A row of the tracker can hold a bead, too. `docs/ralph-beads.md`, "Where beads are".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from queenbee._hashing import sha256
from queenbee.core.beads import DONE, definition_of_done
from queenbee.documents.fields import id_problem
from queenbee.documents.findings import Finding
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.json_documents import Lock, edited, json_files, read_object
from queenbee.documents.ralph.ralph_bead import bead_status, checked_bead_id
from queenbee.errors import Conflict, NotFound, QueenError, Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.whole_files import keep, recall, write_document

_MOVED = "moved "
"""What the note of a move is called by, before the name of its file."""


class BeadFolders:
    """The three folders of beads, as real paths, and the lock under which a bead is rewritten.

    The lock keeps other processes out; no program runs under it.
    """

    def __init__(
        self,
        standalone: str,
        active: str,
        completed: str,
        *,
        lock: Lock = nullcontext,
        notes: str = "",
    ) -> None:
        self.standalone: str = os.path.realpath(standalone)
        self.active: str = os.path.realpath(active)
        self.completed: str = os.path.realpath(completed)
        self.lock = lock
        self.notes = notes
        """The file with a digest of what was last written to each bead of the hive, and of each
        move; "" without.
        """
        self.written: tuple[str, str, str] = (standalone, active, completed)
        """As they were given: if one leads through a link, beads are only read."""

    def all(self) -> tuple[str, str, str]:
        """Returns the folders in the order in which they are searched."""
        return self.standalone, self.active, self.completed


@dataclass(frozen=True)
class BeadFile:
    """One bead and its file; `stale` is the copy that an interrupted move left behind.

    `in_row` means that the file is the tracker's, where nothing is written for it.
    """

    bead_id: str
    path: str
    document: dict[str, Any]
    stale: str | None = None
    in_row: bool = False

    @property
    def place(self) -> str:
        """What a message calls it: its file, or its id if that file has others, too."""
        return f"the row of {self.bead_id}" if self.in_row else self.path


def read_bead(path: str) -> BeadFile:
    """Returns the bead in a file, valid or not. Raises `NotFound` or `Unreadable`."""
    document = read_object(path)
    # Real paths show which folder a bead is in, however it was named.
    folder, name = os.path.split(os.path.abspath(path))
    return BeadFile(id_in(document, path), os.path.join(os.path.realpath(folder), name), document)


def find_bead(folders: BeadFolders, bead_id: str) -> BeadFile:
    """Returns the bead with this id: the id in a file's content, or else the file's name.

    Raises `InvalidInput` for a text that cannot be an id, `NotFound`, and `Conflict` if two files
    have the id and no interrupted move explains it.
    """
    checked_bead_id(bead_id)
    beads, problems = list_beads(folders)
    same = [bead for bead in beads if bead.bead_id == bead_id]
    if not same:
        unread = ""
        if problems:
            unread = f" ({len(problems)} files there cannot be read, such as {problems[0].path})"
        raise NotFound(
            f"no bead {bead_id!r} in {', '.join(folders.all())}{unread}",
            hint="queen bead list",
            bead_id=bead_id,
        )
    if len(same) > 1:
        paths = [bead.path for bead in same]
        raise Conflict(
            f"the bead {bead_id!r} is in more than one file: {', '.join(paths)}",
            hint="remove all but one, or give the others new ids",
            bead_id=bead_id,
            paths=paths,
        )
    return same[0]


def list_beads(folders: BeadFolders) -> tuple[list[BeadFile], list[Finding]]:
    """Returns all beads, and a finding for each file that cannot be read.

    A bead that an interrupted move left in two folders is listed once. A file with the id in its
    content takes precedence over one with the id only as its name.
    """
    beads: list[BeadFile] = []
    problems: list[Finding] = []
    for folder in folders.all():
        for path in json_files(folder):
            try:
                beads.append(read_bead(path))
            except QueenError as error:
                problems.append(Finding(path, error.message))
    named = {bead.bead_id for bead in beads if _names_itself(bead)}
    kept = [bead for bead in beads if _names_itself(bead) or bead.bead_id not in named]
    return _without_moved(kept, folders), problems


def update_bead(
    bead: BeadFile, change: Callable[[dict[str, Any]], None], folders: BeadFolders
) -> BeadFile:
    """Returns the bead after `change` to its document as it is on disk now, not as it was read.

    A bead in `active/` whose status has become `completed` moves to `completed/`, and one there
    that is no longer completed moves back. One in a row changes for the caller alone. Raises
    `NotFound`, `Unreadable`, `Unwritable`, or `Conflict` from `find_bead`.
    """
    if bead.in_row:
        document = deepcopy(bead.document)
        change(document)
        return replace(bead, document=document)
    for folder in folders.written:
        safe_open.refuse_links(os.path.abspath(folder))
    with folders.lock():
        is_ours = os.path.dirname(bead.path) in folders.all()
        current = find_bead(folders, bead.bead_id) if is_ours else read_bead(bead.path)
        change(current.document)
        return _placed(current, folders)


def _placed(bead: BeadFile, folders: BeadFolders) -> BeadFile:
    done = bead_status(bead.document) == "completed"
    folder, name = os.path.split(bead.path)
    if folder == folders.active and done:
        target = os.path.join(folders.completed, name)
    elif folder == folders.completed and not done:
        target = os.path.join(folders.active, name)
    else:
        target = bead.path
    old = safe_open.read(bead.path)
    data = edited(old, bead.document)
    if bead.stale is not None:
        _remove(bead.stale)
    if target == bead.path:
        write_document(target, data)
    else:
        _move(bead, target, old, data, folders)
    gone = {_in_hive(each): "" for each in (bead.path, bead.stale) if each is not None}
    if os.path.dirname(target) != folders.standalone:
        _note(folders, {**gone, _in_hive(target): sha256(data).hexdigest()})
    return BeadFile(bead.bead_id, target, bead.document)


def _move(bead: BeadFile, target: str, old: bytes, data: bytes, folders: BeadFolders) -> None:
    if os.path.lexists(target):
        raise Conflict(
            f"the bead {bead.bead_id!r} cannot be moved: {target} is another bead's file",
            hint=f"rename {target}, or the bead",
            path=target,
        )
    name = os.path.basename(target)
    done = os.path.dirname(target) == folders.completed
    # What a crash would leave is ours alone to remove.
    _note(folders, {_MOVED + name: _pair(old if done else data, data)})
    if not done:
        # 1. Back to active/: the old copy must first say that it is not completed. Otherwise,
        # after a crash following step 2, it would win over the new one.
        write_document(bead.path, data)
    # 2. Write and sync the new file: from here on, it counts.
    write_document(target, data)
    # 3. Remove the old one last: otherwise, a crash would lose the bead.
    _remove(bead.path)


def _pair(active: bytes, completed: bytes) -> str:
    digests = (sha256(each).digest() for each in (active, completed))
    return sha256(b"".join(digests)).hexdigest()


def _note(folders: BeadFolders, said: Mapping[str, str]) -> None:
    """Notes what was written, and that nothing is left where it was: these bytes are ours."""
    if folders.notes:
        keep(folders.notes, {**_noted(folders), **said})


def _noted(folders: BeadFolders) -> dict[str, object]:
    noted = recall(folders.notes) if folders.notes else None
    return noted if isinstance(noted, dict) else {}


def _in_hive(path: str) -> str:
    return os.path.join(os.path.basename(os.path.dirname(path)), os.path.basename(path))


def _remove(path: str) -> None:
    try:
        safe_open.unlink(path)
        safe_open.sync_folder(os.path.dirname(path))
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unwritable(f"{path} cannot be removed: {error.strerror}", path=path) from error


def _without_moved(beads: list[BeadFile], folders: BeadFolders) -> list[BeadFile]:
    """Returns the beads, with the two copies that an interrupted move left merged into one."""
    same: dict[str, list[BeadFile]] = {}
    for bead in beads:
        same.setdefault(bead.bead_id, []).append(bead)
    found: list[BeadFile] = []
    for copies in same.values():
        # A move keeps the name; the folders are searched in this order.
        paths = [os.path.split(bead.path) for bead in copies]
        name = paths[0][1]
        if paths == [(folders.active, name), (folders.completed, name)]:
            copies = _merged(copies[0], copies[1], folders)
        found += copies
    return found


def _merged(active: BeadFile, completed: BeadFile, folders: BeadFolders) -> list[BeadFile]:
    name = os.path.basename(active.path)
    try:
        left = _pair(safe_open.read(active.path), safe_open.read(completed.path))
    except (OSError, QueenError):  # A move has just ended.
        return [each for each in (active, completed) if os.path.lexists(each.path)]
    if left != _noted(folders).get(_MOVED + name):
        return [active, completed]
    counts = bead_status(completed.document) == "completed"
    winner, loser = (completed, active) if counts else (active, completed)
    return [replace(winner, stale=loser.path)]


def id_in(document: dict[str, Any], path: str) -> str:
    """Returns the id of the bead in a file. Raises `Unreadable` if it has none."""
    bead_id = document.get("id")
    if isinstance(bead_id, str) and bead_id:
        if bead_id.encode(errors="replace").decode() != bead_id:  # No database holds it.
            raise Unreadable(f"{path} has half of a character in its id", path=path)
        return bead_id
    stem = os.path.splitext(os.path.basename(path))[0]
    if id_problem(stem):
        raise Unreadable(f"{path} has no id, and its file name cannot be one", path=path)
    return stem


def _names_itself(bead: BeadFile) -> bool:
    return bead.document.get("id") == bead.bead_id


def bead_in_row(row: Mapping[str, object], path: str) -> BeadFile | None:
    """Returns the bead in a row of the tracker's file at `path`, valid or not, or None.

    What the row waits for is the tracker's to say. Nothing is written to it: its runs are in the
    ledger of verifications, and a loop over it starts with its first attempt.
    """
    dod = definition_of_done(row)
    if dod is None:
        return None
    beside = {**metadata_of(row), **row}
    more = {
        name: beside[name]
        for name in ("intent", "constraints", "phase_gate", "ralph_meta")
        if beside.get(name) is not None
    }
    intent = row.get("description") or row.get("title") or str(row.get("id"))
    status = "completed" if row.get("status") in DONE else "pending"
    document = {"id": row.get("id"), "intent": intent, **more, "dod": dod, "status": status}
    return BeadFile(str(row.get("id")), path, document, in_row=True)
