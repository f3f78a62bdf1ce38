"""A step: which lines the last command of a droid wrote on this machine.

`<state>/last/NAME`, a note that can be lost: then nothing is taken back. That of a person is where
no agent in a sandbox writes. What the lines said, and what was before them, the records know.
"""

from __future__ import annotations

import os

from queenbee.core.kinds import ISSUES, KINDS
from queenbee.core.names import PERSON, is_name
from queenbee.store.codec import decode
from queenbee.store.whole_files import keep, recall

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from queenbee.core.fold import Fields
    from queenbee.services.writing.transaction import Transaction
    from queenbee.store.layout import Layout

    Span = tuple[int, int, list[str]]
    """Of one record: the first and the last revision, and of an issue, the fields that changed."""

_FOLDER = "last"
_OF_MESSAGES, _EVIDENCE = "messages", "verifications"


class Step:
    """What one command of a droid wrote."""

    __slots__ = ("at_ms", "command", "key", "lines", "program", "settings")

    def __init__(
        self,
        key: str,
        command: str,
        at_ms: int,
        lines: dict[str, dict[str, Span]] | None = None,
        settings: dict[str, list[Any]] | None = None,
        program: str = "",
    ) -> None:
        self.key: str = key
        """What the transactions of one command have in common."""
        self.command: str = command
        """As it was typed, without its arguments: `queen release`; "" for a call of the library."""
        self.at_ms: int = at_ms
        self.lines: dict[str, dict[str, Span]] = lines or {}
        """By kind and id of the record."""
        self.settings: dict[str, list[Any]] = settings or {}
        """By name: the file, the value before, and the value after; None for none."""
        self.program: str = program
        """The program that wrote some of it to its own database: that is not known here."""

    @classmethod
    def last(cls, layout: Layout, droid: str | None) -> Step | None:
        """Returns the last step of a droid, or of the person without a name; None if none is known.

        What another version wrote is not known.
        """
        try:
            step = cls(**recall(_path(layout, droid)))
            return step if step._is_sound() else None
        except (TypeError, ValueError, AttributeError):  # Anybody may have written it.
            return None

    def keep(self, layout: Layout, droid: str | None) -> None:
        """Keeps the step as the last one. Never fails: what cannot be kept is not taken back."""
        path = _path(layout, droid)
        if is_name(os.path.basename(path)):
            keep(path, {each: getattr(self, each) for each in self.__slots__})

    def _is_sound(self) -> bool:
        texts: list[object] = [self.key, self.command, self.program]
        numbers: list[object] = [self.at_ms]
        for lines in self.lines.values():
            for first, last, names in lines.values():
                numbers += first, last
                texts += names if type(names) is list else [None]
        texts += [path for path, _, _ in self.settings.values()]
        is_known = KINDS.keys() >= self.lines.keys()
        return is_known and {*map(type, texts)} <= {str} and {*map(type, numbers)} == {int}

    def added(self, tx: Transaction) -> bool:
        """Adds the lines of a transaction; returns whether there are any to be taken back: not
        marks of what was read, evidence, and what the hive told others.
        """
        found = False
        for kind, identifier, span in _spans(tx):
            lines, (first, last, names) = self.lines.setdefault(kind, {}), span
            if identifier in lines:
                first, names = lines[identifier][0], [*lines[identifier][2], *names]
            lines[identifier] = (first, last, [*dict.fromkeys(names)])
            found = True
        return found


def note(layout: Layout, droid: str | None, tx: Transaction, key: str, command: str) -> None:
    """Notes the lines of a transaction as the last step of a droid, or as a part of it."""
    step = Step.last(layout, droid)
    if step is None or step.key != key:
        step = Step(key, command, tx.now_ms)
    if step.added(tx):
        step.keep(layout, droid)


def _path(layout: Layout, droid: str | None) -> str:
    name = droid or PERSON
    place = layout.private_dir if name == PERSON else layout.state_dir
    return os.path.join(place, _FOLDER, name)


def _spans(tx: Transaction) -> Iterator[tuple[str, str, Span]]:
    asked = {edit.issue_id: [*edit.changes] for edit in tx.edits}
    for kind, lines in tx.lines.items():
        for fields in map(decode, lines):
            identifier, rev = fields.get("id"), fields.get("rev")
            if not (isinstance(identifier, str) and isinstance(rev, int)):
                continue
            if kind == ISSUES:
                names = asked.get(identifier)
                # The first line of an issue may be what was there before the change.
                if names is not None and (rev > 1 or "id" in names):
                    yield kind, identifier, (rev, rev, names)
            elif kind != _EVIDENCE and not (kind == _OF_MESSAGES and _is_aside(fields)):
                yield kind, identifier, (rev, rev, [])


def _is_aside(message: Fields) -> bool:
    is_mark = message.get("rev") != 1 and not message.get("deleted")
    return is_mark or message.get("by_hive") is True
