"""A hive outside of git, as the processes see it that read and write it one after the other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from raw_files import remembered

from queenbee.store.creating import make_state_dir
from queenbee.store.layout import discover
from queenbee.store.memory import rotation
from queenbee.store.memory.archive import Archive
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.memory.recorded import Recorded
from queenbee.store.memory.rotation import Rotation

KIND = "messages"
Fields = dict[str, Any]


def line(identifier: str, rev: int = 1, **more: object) -> bytes:
    """Returns a line; one without `rev` for 0."""
    fields = {"id": identifier, "created_at": "2026-01-01T00:00:00.000Z", **more, "rev": rev}
    if not rev:
        del fields["rev"]
    return json.dumps(fields, separators=(",", ":")).encode()


def joined(lines: Iterable[bytes]) -> bytes:
    """Returns the content of a file with these lines."""
    return b"".join(each + b"\n" for each in lines)


def put(path: str | Path, data: bytes) -> None:
    """Replaces a file as git does: another inode."""
    path = Path(path)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)


class Place:
    """One clone's files."""

    def __init__(self, root: Path) -> None:
        self.beads = root / ".beads"
        self.beads.mkdir(parents=True, exist_ok=True)
        self.layout = discover(str(root), {}, beads_dir=str(self.beads))
        make_state_dir(self.layout)

    @property
    def state_dir(self) -> Path:
        return Path(self.layout.state_dir)

    def ledger(self, kind: str = KIND) -> Path:
        return Path(self.layout.ledger_path(kind))

    def archive(self, kind: str = KIND) -> Archive:
        return Archive(str(self.ledger(kind)))

    def segment(self, number: int, kind: str = KIND) -> Path:
        return self.beads / "archive" / f"queen_{kind}.{number}.jsonl"

    def content(self, kind: str = KIND) -> bytes:
        """Returns the bytes of the ledger; none if it does not exist."""
        path = self.ledger(kind)
        return path.read_bytes() if path.exists() else b""

    def archived(self, kind: str = KIND) -> list[bytes]:
        """Returns the lines of all segments, in the order of their numbers."""
        archive = self.archive(kind)
        return [each for name in archive.listing() for each in archive.read(name).splitlines()]

    def tracked(self, kind: str = KIND) -> set[bytes]:
        """Returns what a clone of this one would get."""
        return {*self.content(kind).splitlines(), *self.archived(kind)}

    def recorded(self, kind: str = KIND) -> list[bytes]:
        """Returns what this clone has acknowledged, in order of arrival."""
        return remembered(self.state_dir, kind)

    # What processes do.

    def write(self, lines: dict[str, list[bytes]]) -> None:
        with closing(FilesMemory(self.layout)) as memory:
            memory.write(lines)

    def record(self, *lines: bytes) -> None:
        self.write({KIND: [*lines]})

    def rotate(self, is_closed: Callable[[Fields], bool], *more: Any) -> Rotation:
        with closing(FilesMemory(self.layout)) as memory:
            return rotation.rotate(memory, KIND, is_closed, *more)

    def is_due(self, limit_bytes: int) -> bool:
        with closing(FilesMemory(self.layout)) as memory:
            return rotation.is_due(memory, KIND, limit_bytes)

    def state(self) -> dict[str, Fields]:
        with closing(FilesMemory(self.layout)) as memory:
            return state_of(memory)

    def forget(self) -> None:
        """Deletes the memory, as somebody may."""
        for each in self.state_dir.glob("hive.sqlite3*"):
            os.unlink(each)


def state_of(memory: FilesMemory, kind: str = KIND) -> dict[str, Fields]:
    """Returns every record that a process sees, by id."""
    state = Recorded(kind, memory)
    state.refresh()
    return {str(fields["id"]): fields for fields in state.everything()}
