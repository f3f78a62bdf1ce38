"""What this machine knows of the branch: up to where both hold the same lines.

It is noted in this clone's memory, by which lines are counted, and lost with it: without it,
everything is compared once. ADR 0029.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.core.ids import RANDOM_BYTES, ulid
from queenbee.errors import Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.whole_files import take_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.services.open_store import Store

_KNOWN, _ROUND, _FETCHED, _PENDING = "sync known", "sync round", "sync fetched", "sync pending "
"""The names of the notes."""


@dataclass(slots=True)
class Known:
    """What both sides have: all lines of the commit `taken` are here, and the commit `sent` has all
    lines of this memory up to a number.
    """

    taken: str | None
    sent: str | None
    ends: Mapping[str, int]
    """By kind, the number of the last line that was sent."""
    done: int
    """The round that found this. Rounds are counted, so that no clock is needed to tell whether
    one began after somebody had asked for it."""
    held: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By kind, the numbers of lines before that which are not sent: they look like secrets."""


def _machine() -> bytes:
    """Returns the id that systemd gave this machine; nothing elsewhere."""
    with suppress(OSError, Unreadable):
        return safe_open.read("/etc/machine-id", 4096)
    return b""


class Notes:
    """The notes about one branch, in this clone's memory."""

    def __init__(self, store: Store, ref: str) -> None:
        self.folder: str = store.layout.remote_dir
        self.lock_path: str = os.path.join(self.folder, "lock")
        self._memory = store.engine.memory
        self._clone_path = os.path.join(self.folder, "clone")
        self._ref = ref
        try:
            safe_open.make_folder(self.folder)
        except OSError as error:
            raise Unwritable(
                f"{self.folder} cannot be created: {error.strerror}", path=self.folder
            ) from error

    def known(self) -> Known:
        """Returns what is known; nothing, if it was not noted, or of another branch."""
        try:
            said = json.loads(str(self._memory.noted(_KNOWN)))
            if said["ref"] != self._ref:
                return Known(None, None, {}, 0)
            ends = {str(kind): int(end) for kind, end in said["ends"].items()}
            held = said.get("held", {}).items()  # Older notes have none.
            held = {str(kind): [int(each) for each in numbers] for kind, numbers in held}
            return Known(said["taken"], said["sent"], ends, int(said["done"]), held)
        except (ValueError, KeyError, TypeError, AttributeError):
            return Known(None, None, {}, 0)

    def write(self, known: Known) -> None:
        """Replaces the note. Needs the branch's lock."""
        self._memory.note(_KNOWN, json.dumps({"ref": self._ref, **asdict(known)}))

    def round(self) -> int:
        """Returns the number of the round that began last."""
        # At least that of what was fetched: if a note was lost, nobody waits for less than that.
        return max(self._number(_ROUND), self.fetched())

    def begin_round(self) -> int:
        """Returns the number of a new round. Needs the branch's lock."""
        number = self.round() + 1
        self._memory.note(_ROUND, number)
        return number

    def fetched(self) -> int:
        """Returns the number of the round that has taken in last what the remote had."""
        return max(self._number(_FETCHED), self.known().done)

    def note_fetched(self, number: int) -> None:
        """Notes that a round took in what the remote had, and sent nothing. Needs the lock."""
        self._memory.note(_FETCHED, number)

    def _number(self, name: str) -> int:
        value = self._memory.noted(name)
        return value if isinstance(value, int) else 0

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
        mark = sha256(b"\n".join([made, os.fsencode(where), _machine()]))
        return f"qc-{mark.hexdigest()[:26]}"

    def _new_clone(self) -> bytes:
        made = os.urandom(16).hex().encode()
        take_name(self._clone_path, made, durable=False)
        return made

    # A request that waits for its confirmation is noted, so that whoever pushes next confirms or
    # ends all of its grants, also if the process that asked for them was killed.

    def add_pending(self, grants: Sequence[tuple[str, str]]) -> str:
        """Notes grants that are confirmed together or not at all, each by kind and id."""
        name = ulid(time.time_ns() // 1_000_000, os.urandom(RANDOM_BYTES))
        self._memory.note(_PENDING + name, json.dumps(grants))
        return name

    def pending(self) -> dict[str, list[tuple[str, str]]]:
        """Returns the requests that wait for a confirmation, oldest first."""
        return {
            name: [(str(kind), str(identifier)) for kind, identifier in json.loads(str(said))]
            for name, said in self._memory.notes(_PENDING).items()
        }

    def is_pending(self, name: str) -> bool:
        """Returns whether a request still waits."""
        return self._memory.noted(_PENDING + name) is not None

    def remove_pending(self, name: str) -> None:
        """Forgets a request that was confirmed or ended."""
        self._memory.note(_PENDING + name, None)
