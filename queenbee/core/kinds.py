"""Every kind of record in one place: its ids, view and index, and what other layers need.

To add a kind, add a class here and to `KINDS`, a view to `core.records`, and a service. Ledger,
memory, doctor and history accept any kind, also one that only another version knows.
"""

from __future__ import annotations

from queenbee.core.fold import MAX_REV, newest_ms
from queenbee.core.leases import assignment_end_ms, lease_end_ms
from queenbee.core.names import EVERYONE
from queenbee.core.records import Assignment, Message, Record, Reservation

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from queenbee.core.fold import Fields

_WRITTEN_BY_GO = {"agent": "droid", "previous_agent": "previous_droid"}
_BY_RECIPIENT = {"by_to": "to", "by_issue": "issue_id", "by_thread": "thread_id"}
_BY_DROID = {"by_droid": "droid", "by_issue": "issue_id", "by_status": "status"}


class Kind:
    """A kind of record; this class itself is for kinds that this version does not know."""

    prefix = ""
    """The beginning of ids of this kind, before a `-`."""
    view: type[Record] = Record
    everywhere = False
    """Whether every hive has the kind; the others appear with their first record."""
    listed_by = ""
    """The command that shows such records."""
    aliases: Mapping[str, str] = {}
    """Field names that other programs use, each with ours."""
    columns: tuple[str, ...] = ()
    """The fields that an index can query; a change needs a new `VERSION` of its tables."""
    indexes: tuple[tuple[str, ...], ...] = ()
    """The columns of each SQL index; a change needs a new `VERSION` of its tables, too."""
    holds = ""
    """Of grants, the column that says what an active one holds."""
    exported: Mapping[str, str] = {}
    """The groups of `queen hive index export`, each with its field."""
    droids: tuple[str, ...] = ()
    """The fields that name a droid."""
    signs: tuple[tuple[str, str], ...] = ()
    """Signs of life: the field of a droid, and of an instant at which that droid wrote."""
    required: tuple[str, ...] = ()
    """The fields that the doctor reports as missing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def closed_ms(self, fields: Fields) -> int | None:
        """Returns when a record was closed, in ms since 1970: no further change is expected.

        The instant is in the future for an open record, and None for an unknown kind.
        """
        return None

    def marks(self, fields: Fields) -> Iterable[str]:
        """Returns the fields in which single droids marked a record that is for everyone."""
        return ()

    def author(self, line: Fields, changes: Fields, *, first: bool) -> object:
        """Returns who wrote a line of a record, or None if the line does not say.

        `changes` are the fields that differ from the previous line.
        """
        if "deleted" in changes and line.get("deleted_by"):
            return line["deleted_by"]
        return (not first and line.get("released_by")) or line.get("droid")


class _Messages(Kind):
    prefix = "qm"
    view = Message
    everywhere = True
    listed_by = "queen msg inbox"
    columns = ("to", "from", "issue_id", "thread_id")
    indexes = (
        ("to", "deleted", "created_ms"),
        ("to", "read", "deleted", "created_ms"),  # Of many messages, few are unread.
        ("from", "created_ms"),
        ("issue_id", "created_ms"),
        ("thread_id", "created_ms"),
    )
    exported = _BY_RECIPIENT
    droids = ("from", "to")
    signs = (("from", "created_at"), ("to", "read_at"), ("to", "acked_at"))

    def closed_ms(self, fields: Fields) -> int:
        """Returns when the message last changed: it stays readable in the archive."""
        return newest_ms(fields)

    def author(self, line: Fields, changes: Fields, *, first: bool) -> object:
        if "deleted" in changes:
            return line.get("deleted_by") or line.get("from")
        if first:
            return line.get("from")
        readers = (name.partition(":")[0] for name in changes if ":" in name)
        return next(readers, None) or line.get("to")

    def marks(self, fields: Fields) -> Iterable[str]:
        return [name for name in fields if ":" in name] if fields.get("to") == EVERYONE else ()


class _Assignments(Kind):
    prefix = "qa"
    view = Assignment
    everywhere = True
    listed_by = "queen issue assignments"
    aliases = _WRITTEN_BY_GO
    columns = ("issue_id", "droid", "status", "updated_at")
    holds = "issue_id"
    indexes = (
        ("issue_id", "created_ms"),
        ("droid", "created_ms"),
        ("status", "created_ms"),
        ("status", "updated_at"),
    )
    exported = _BY_DROID
    droids = ("droid",)
    signs = (("droid", "created_at"), ("droid", "updated_at"))
    required = ("issue_id", "droid")

    def closed_ms(self, fields: Fields) -> int:
        return assignment_end_ms(Assignment(fields))

    def author(self, line: Fields, changes: Fields, *, first: bool) -> object:
        if first or "deleted" in changes:
            return line.get("assigned_by" if first else "deleted_by")
        return line.get("updated_by") or line.get("droid")


class _Reservations(Kind):
    prefix = "qr"
    view = Reservation
    everywhere = True
    listed_by = "queen reserve list"
    aliases = _WRITTEN_BY_GO
    columns = ("droid", "status", "issue_id", "pattern", "expires_at", "released_at")
    holds = "pattern"
    indexes = (
        ("droid", "created_ms"),
        ("status", "pattern", "id"),
        ("released_at",),
        ("issue_id",),
    )
    exported = _BY_DROID
    droids = ("droid",)
    signs = (("droid", "created_at"), ("droid", "updated_at"), ("droid", "released_at"))
    required = ("droid",)

    def closed_ms(self, fields: Fields) -> int:
        return lease_end_ms(Reservation(fields))


class _Verifications(Kind):
    prefix = "qv"
    listed_by = "queen show"
    columns = ("subject_kind", "subject_id")
    indexes = (("subject_id", "created_ms"),)

    def closed_ms(self, fields: Fields) -> int:
        return newest_ms(fields)


class _Issues(Kind):
    """The tracker's rows: a line for each change, with the fields that changed."""

    listed_by = "queen issues"

    def author(self, line: Fields, changes: Fields, *, first: bool) -> object:
        return line.get("created_by") if first else None

    def closed_ms(self, fields: Fields) -> int:
        """Returns when the issue was closed; an open one is never archived."""
        done = fields.get("status") in ("closed", "tombstone")
        return newest_ms(fields) if done else MAX_REV


ISSUES = "issues"
"""The kind of record that keeps the changes of the tracker's rows."""

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        _Messages("messages"),
        _Assignments("assignments"),
        _Reservations("reservations"),
        _Verifications("verifications"),
        _Issues(ISSUES),
    )
}


def kind_of(name: str) -> Kind:
    """Returns the kind of this name, even if this version does not know it."""
    return KINDS.get(name) or Kind(name)
