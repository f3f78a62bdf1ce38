"""The folder of a team session, read once: every file that validation needs.

The only module of sessions that touches the disk. After the document on team sessions,
"Directory Structure".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from queenbee.errors import Conflict, NotFound, Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.whole_files import read_document, write_document

MAX_BYTES = 1024 * 1024
MAX_ROLE_SPEC_BYTES = 256 * 1024
MAX_ROLE_SPECS_BYTES = 4 * MAX_BYTES
"""The size of all role-specs together: parsing Markdown takes up to 8 s per megabyte."""

TEAM_SESSION = "team-session.json"
TASK_ANALYSIS = "task-analysis.json"
SHARED_MEMORY = "shared-memory.json"
ROLE_SPECS = "role-specs"
FOLDERS = ("artifacts", "discussions", "explorations", "wisdom", ".msg")


@dataclass(frozen=True)
class File:
    """A file in the session's folder: its bytes, or why they cannot be read.

    Both are None if there is no such file.
    """

    data: bytes | None = None
    problem: str | None = None

    @property
    def exists(self) -> bool:
        """Whether anything with this name exists."""
        return self.data is not None or self.problem is not None


@dataclass(frozen=True)
class SessionFolder:
    """A session's folder; `role_specs` has its `.md` files by name without `.md`.

    `role_specs` is None if that folder is missing.
    """

    path: str
    exists: bool = True
    team_session: File = field(default_factory=File)
    task_analysis: File = field(default_factory=File)
    shared_memory: File = field(default_factory=File)
    role_specs: Mapping[str, File] | None = None


def read_session_folder(path: str) -> SessionFolder:
    """Returns the session's folder. Never raises: an unreadable file carries the reason."""
    if "\0" in path or not os.path.isdir(path):
        return SessionFolder(path, exists=False)
    return SessionFolder(
        path,
        team_session=_read(path, TEAM_SESSION),
        task_analysis=_read(path, TASK_ANALYSIS),
        shared_memory=_read(path, SHARED_MEMORY),
        role_specs=_role_specs(path),
    )


def write_session_folder(path: str, files: Mapping[str, bytes]) -> None:
    """Creates a session folder with these files and the document's empty folders.

    Raises `Conflict` if the path exists, else `Unwritable`. The file that makes it a session is
    written last, so that a half-written folder never looks like a session.
    """
    if os.path.lexists(path):
        hint = "choose another folder, or describe another task"
        raise Conflict(f"{path} already exists", hint=hint, path=path)
    path = safe_open.resolved(path)
    try:
        safe_open.make_folder(os.path.dirname(path))
        for folder in (path, *(os.path.join(path, name) for name in (ROLE_SPECS, *FOLDERS))):
            safe_open.make_new_folder(folder)
    except OSError as error:
        raise Unwritable(f"{path} cannot be created: {error.strerror}", path=path) from error
    for name in sorted(files, key=lambda name: name == TEAM_SESSION):
        write_document(os.path.join(path, name), files[name])


def _read(folder: str, name: str, *, max_bytes: int = MAX_BYTES) -> File:
    path = os.path.join(folder, name)
    if _leads_outside(path, folder):
        return File(problem="it leads outside the session's folder")
    try:
        return File(read_document(path, max_bytes=max_bytes))
    except NotFound:
        # A broken link is a name without a file.
        return File()
    except Unreadable as error:
        return File(problem=error.message.removeprefix(f"{path} "))


def _role_specs(folder: str) -> dict[str, File] | None:
    specs_path = os.path.join(folder, ROLE_SPECS)
    if not os.path.isdir(specs_path) or _leads_outside(specs_path, folder):
        return None
    try:
        names = sorted(name for name in os.listdir(specs_path) if name.endswith(".md"))
    except OSError:
        return None
    found: dict[str, File] = {}
    left = MAX_ROLE_SPECS_BYTES
    for name in names:
        if os.path.isdir(os.path.join(specs_path, name)):
            continue
        file = File(problem=f"the role-specs have more than {MAX_ROLE_SPECS_BYTES:,} bytes")
        if left > 0:
            file = _read(folder, os.path.join(ROLE_SPECS, name), max_bytes=MAX_ROLE_SPEC_BYTES)
            left -= len(file.data or b"")
        if file.exists:
            found[name[:-3]] = file
    return found


def _leads_outside(path: str, folder: str) -> bool:
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([real, root]) != root
