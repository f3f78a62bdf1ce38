"""What this machine knows of the branch: up to where both hold the same lines.

It is a cache in the state directory: without it, everything is compared once. ADR 0029.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from queenbee.core.ids import RANDOM_BYTES, ulid
from queenbee.errors import Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.files import size_of
from queenbee.store.whole_files import is_unfinished, take_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.services.open_store import Store

_MOST_BYTES = 2**20


@dataclass(slots=True)
class Known:
    """What both sides have: all lines of the commit `taken` are here, and the commit `sent` has all
    lines of this memory up to a number.
    """

    taken: str | None
    sent: str | None
    ends: Mapping[str, int]
    """By kind, the number of the last line that was sent."""
    memory: str
    """Which memory counts the lines so. Another one has to be compared whole."""
    done: int
    """The round that found this. Rounds are counted, so that no clock is needed to tell whether
    one began after somebody had asked for it."""


def _remove(path: str) -> None:
    """Removes a note, if it is there. Raises `Unwritable` if something else has its place."""
    try:
        safe_open.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Unwritable(
            f"{path} cannot be removed: {error.strerror}",
            hint="if it is a folder, move it away; it is only a note of queen sync",
            path=path,
        ) from error


def _machine() -> bytes:
    """Returns the id that systemd gave this machine; nothing elsewhere."""
    with suppress(OSError, Unreadable):
        return safe_open.read("/etc/machine-id", 4096)
    return b""


class Notes:
    """The notes about one branch, in `remote/` of the state directory."""

    def __init__(self, store: Store, ref: str) -> None:
        self.folder = store.layout.remote_dir
        self.lock_path = os.path.join(self.folder, "lock")
        self._known_path = os.path.join(self.folder, "known.json")
        self._rounds_path = os.path.join(self.folder, "rounds")
        self._fetches_path = os.path.join(self.folder, "fetches")
        self._pending_dir = os.path.join(self.folder, "pending")
        self._clone_path = os.path.join(self.folder, "clone")
        self._ref = ref
        try:
            safe_open.make_folder(self._pending_dir)
        except OSError as error:
            raise Unwritable(
                f"{self.folder} cannot be created: {error.strerror}", path=self.folder
            ) from error

    def known(self) -> Known:
        """Returns what is known; nothing, if the note is missing, damaged or of another branch."""
        try:
            said = json.loads(safe_open.read(self._known_path, _MOST_BYTES))
            if said["ref"] != self._ref:
                return Known(None, None, {}, "", 0)
            ends = {str(kind): int(end) for kind, end in said["ends"].items()}
            taken, sent, memory, done = (said[k] for k in ("taken", "sent", "memory", "done"))
            return Known(taken, sent, ends, str(memory), int(done))
        except (OSError, Unreadable, ValueError, KeyError, TypeError, AttributeError):
            return Known(None, None, {}, "", 0)

    def write(self, known: Known) -> None:
        """Replaces the note. Needs the branch's lock."""
        said = asdict(known)
        # Without the note everything is compared, which is right as well.
        _remove(self._known_path)
        data = json.dumps({"ref": self._ref, **said}).encode()
        take_name(self._known_path, data, durable=False)

    # A number is the size of an empty file: it is never seen half written, and takes no block. To
    # replace a small file waits for the disk on ext4, several times for each grant.

    def round(self) -> int:
        """Returns the number of the round that began last."""
        # At least that of what was fetched: if a file was lost, nobody waits for less than that.
        return max(size_of(self._rounds_path), self.fetched())

    def begin_round(self) -> int:
        """Returns the number of a new round. Needs the branch's lock."""
        number = self.round() + 1
        self._resize(self._rounds_path, number)
        return number

    def fetched(self) -> int:
        """Returns the number of the round that has taken in last what the remote had."""
        return max(size_of(self._fetches_path), self.known().done)

    def note_fetched(self, number: int) -> None:
        """Notes that a round took in what the remote had, and sent nothing. Needs the lock."""
        self._resize(self._fetches_path, number)

    def clone(self) -> str:
        """Returns the id of this clone, which its confirmed grants carry.

        A copy of the folder has another one: the id follows from what the kernel says of this very
        file, from where it is, and from the machine. One that changes costs no grant: what the
        clone confirmed before then counts until `clock_skew` after its end, as in all others.
        """
        try:
            made = safe_open.read(self._clone_path, 64) or self._new_clone()
        except (OSError, Unreadable):
            made = self._new_clone()
        status = os.stat(self._clone_path, follow_symlinks=False)
        path = os.path.realpath(self._clone_path)
        where = f"{path} {status.st_ino} {status.st_ctime_ns} {os.uname().nodename}"
        mark = hashlib.sha256(b"\n".join([made, os.fsencode(where), _machine()]))
        return f"qc-{mark.hexdigest()[:26]}"

    def _new_clone(self) -> bytes:
        made = os.urandom(16).hex().encode()
        take_name(self._clone_path, made, durable=False)
        return made

    # A request that waits for its confirmation has a file, so that whoever pushes next confirms or
    # ends all of its grants, also if the process that asked for them was killed.

    def add_pending(self, grants: Sequence[tuple[str, str]]) -> str:
        """Notes grants that are confirmed together or not at all, each by kind and id."""
        name = ulid(time.time_ns() // 1_000_000, os.urandom(RANDOM_BYTES))
        take_name(self._path_of(name), json.dumps(grants).encode(), durable=False)
        return name

    def pending(self) -> dict[str, list[tuple[str, str]]]:
        """Returns the requests that wait for a confirmation, oldest first."""
        found = {}
        for name in sorted(os.listdir(self._pending_dir)):
            if is_unfinished(name):
                continue
            try:
                said = json.loads(safe_open.read(self._path_of(name), _MOST_BYTES))
                found[name] = [(str(kind), str(identifier)) for kind, identifier in said]
            except FileNotFoundError:
                continue
            except (IsADirectoryError, Unreadable, ValueError, TypeError):
                self.remove_pending(name)
        return found

    def is_pending(self, name: str) -> bool:
        """Returns whether a request still waits."""
        return os.path.lexists(self._path_of(name))

    def remove_pending(self, name: str) -> None:
        """Forgets a request that was confirmed or ended."""
        _remove(self._path_of(name))

    def _path_of(self, name: str) -> str:
        return os.path.join(self._pending_dir, name)

    def _resize(self, path: str, size: int) -> None:
        try:
            file = safe_open.open_file(path, os.O_RDWR | os.O_CREAT)
            try:
                os.ftruncate(file, size)
            finally:
                os.close(file)
        except OSError as error:
            raise Unwritable(f"{path} cannot be written: {error.strerror}", path=path) from error
