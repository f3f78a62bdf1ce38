"""Lines that stay here: somebody wrote them by hand, and they look like secrets.

What QueenBee writes was looked at before. The ledgers are files that anybody can edit, and the
remote keeps in its history what it had once.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import printable
from queenbee.errors import QueenError
from queenbee.git.contents.record_blobs import once
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.sync_state import Notes
from queenbee.services.diagnosis import Diagnosis
from queenbee.services.writing.secrets import OVERRIDE, LooksLikeSecret, refuse_secrets_in_row
from queenbee.store import safe_open
from queenbee.store.codec import Unusable
from queenbee.store.memory.archive import Archive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout
    from queenbee.store.memory.recorded import Recorded

_WAY_OUT = (
    "revoke it, then remove it as docs/security.md says (Purging a secret); if it is not a secret: "
)


def why_withheld(line: bytes) -> str:
    """Returns why a line must not leave this machine; empty for one that may."""
    try:
        refuse_secrets_in_row(json.loads(line, object_pairs_hook=once))
    except LooksLikeSecret as error:
        return f"it seems to hold a secret ({', '.join(error.kinds)})"
    except Unusable as error:  # Readers see one value alone, and the line has both.
        return str(error)
    return ""


def numbered(state: Recorded, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """Yields recorded lines by their numbers."""
    for number in numbers:
        for found, line in state.lines_after(number - 1):
            if found == number:
                yield number, line
            break


def placed(
    layout: Layout, kind: str, lines: Iterable[tuple[bytes, str]], way: str
) -> list[Diagnosis]:
    """Returns where lines of a kind are, in the ledger or its archive, each with why it is not
    sent; never what is in it. `way` is the command that takes it all the same.
    """
    ledger, held = layout.ledger_path(kind), dict(lines)
    archive, hint = Archive(ledger), f"{_WAY_OUT}{OVERRIDE}=1 {way}"
    at = dict[bytes, tuple[str, int]]()
    for path in filter(os.path.exists, (ledger, *map(archive.path, archive.listing()))):
        here = dict[bytes, tuple[str, int]]()
        for number, line in enumerate(safe_open.read(path).split(b"\n"), 1):
            if (there := line.removesuffix(b"\r")) in held:
                here.setdefault(there, (path, number))
        at |= here
    found = list[Diagnosis]()
    for line, why in held.items():
        place, at_line = at.get(line, (ledger, None))
        found.append(Diagnosis("not_sent", place, f"not sent: {why}", line=at_line, hint=hint))
    return found


class Held:
    """Gives a database the lines that may leave this machine, and has the others by kind."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._by_kind: dict[str, list[tuple[bytes, str]]] = {}

    def __call__(self, kind: str, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Returns those that may."""
        if os.environ.get(OVERRIDE) == "1":
            return lines
        reasons = {line: why_withheld(line) for line in lines}
        self._by_kind[kind] = [(line, why) for line, why in reasons.items() if why]
        return [line for line in lines if not reasons[line]]

    def found(self) -> list[Diagnosis]:
        """Returns the others, and where they are."""
        way, kinds = "queen hive engine use postgres", self._by_kind.items()
        return [
            each for kind, held in kinds if held for each in placed(self._layout, kind, held, way)
        ]


def sentence(held: Diagnosis) -> str:
    """Returns which line stays here, why, and what to do."""
    place = f"{held.file}:{held.line}" if held.line else held.file
    return f"{printable(place)}: {printable(held.message)} [{printable(held.hint or '')}]"


def not_sent(hive: Services) -> list[Diagnosis]:
    """Returns the lines that the last exchange with the remote has left out."""
    found = list[Diagnosis]()
    if not os.path.isdir(hive.layout.remote_dir):
        return found
    with suppress(QueenError):  # Of a remote that is no longer there.
        for kind, numbers in Notes(hive, Branch(hive).ref).known().held.items():
            lines = [line for _, line in numbered(hive.state(kind), numbers)]
            found += placed(hive.layout, kind, [(e, why_withheld(e)) for e in lines], "queen sync")
    return found
