"""The folder of a team session, read once: every file that validation looks at, or why not.

The only module of the session that touches the disk. After the document on team sessions,
"Directory Structure".
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from queenbee.errors import Conflict, NotFound, Unreadable, Unwritable
from queenbee.store.documents import read_document, write_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 1024 * 1024
MAX_ROLE_SPEC_BYTES = 256 * 1024
MAX_ROLE_SPECS_BYTES = 4 * MAX_BYTES
"""Of all role-specs together: reading their Markdown takes up to eight seconds a megabyte."""

TEAM_SESSION = "team-session.json"
TASK_ANALYSIS = "task-analysis.json"
SHARED_MEMORY = "shared-memory.json"
ROLE_SPECS = "role-specs"
FOLDERS = ("artifacts", "discussions", "explorations", "wisdom", ".msg")


@dataclass(frozen=True)
class File:
    """Is what a name in the session's folder holds: its bytes, or why they cannot be read.

    Both None: there is no such file.
    """

    data: bytes | None = None
    problem: str | None = None

    @property
    def exists(self) -> bool:
        """Whether there is anything under the name."""
        return self.data is not None or self.problem is not None


@dataclass(frozen=True)
class SessionFolder:
    """Is a session's folder as it was found; `role_specs` is None where that folder is missing.

    `role_specs` has the `.md` files by their names without `.md`.
    """

    path: str
    exists: bool = True
    team_session: File = field(default_factory=File)
    task_analysis: File = field(default_factory=File)
    shared_memory: File = field(default_factory=File)
    role_specs: Mapping[str, File] | None = None


def read_session_folder(path: str) -> SessionFolder:
    """Returns the session's folder. Never raises: what cannot be read is said in its place."""
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
    """Makes a new session folder with these files and the document's empty folders.

    Raises `Conflict` where something is under that name already, else `Unwritable`; the file
    that makes it a session comes last, so that a crash leaves no half session behind that looks
    like one.
    """
    if os.path.lexists(path):
        hint = "choose another folder, or describe another task"
        raise Conflict(f"{path} exists already", hint=hint, path=path)
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        os.mkdir(path)
        for folder in (ROLE_SPECS, *FOLDERS):
            os.mkdir(os.path.join(path, folder))
    except OSError as error:
        raise Unwritable(f"{path} cannot be made: {error.strerror}", path=path) from error
    for name in sorted(files, key=lambda name: name == TEAM_SESSION):
        write_document(os.path.join(path, name), files[name])


def _read(folder: str, name: str, *, max_bytes: int = MAX_BYTES) -> File:
    path = os.path.join(folder, name)
    if _leads_outside(path, folder):
        return File(problem="it leads outside the session's folder")
    try:
        return File(read_document(path, max_bytes=max_bytes))
    except NotFound:
        # A link that leads nowhere is there, as a name, but no file.
        return File()
    except Unreadable as error:
        return File(problem=error.message.removeprefix(f"{path} "))


def _role_specs(folder: str) -> dict[str, File] | None:
    place = os.path.join(folder, ROLE_SPECS)
    if not os.path.isdir(place) or _leads_outside(place, folder):
        return None
    try:
        names = sorted(name for name in os.listdir(place) if name.endswith(".md"))
    except OSError:
        return None
    found: dict[str, File] = {}
    left = MAX_ROLE_SPECS_BYTES
    for name in names:
        if os.path.isdir(os.path.join(place, name)):
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
