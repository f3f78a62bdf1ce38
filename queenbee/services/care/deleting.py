"""`queen hive delete`: hides any record by a tombstone, as `queen msg delete` does messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.kinds import kind_of
from queenbee.core.leases import as_of
from queenbee.core.text import suggested
from queenbee.errors import Conflict, NotYours

if TYPE_CHECKING:
    from queenbee.core.records import Record
    from queenbee.services.hive import Services

_ENDING = {"assignments": "queen release", "reservations": "queen reserve release"}
_OWNERS = {
    "assignments": ("droid", "assigned_by"),
    "reservations": ("droid",),
    "verifications": ("droid",),
}
_EVERYBODYS = ("queen", "human")


def delete(hive: Services, identifier: str) -> Record:
    """Hides a record from every list, and returns it; its lines stay. Repeating it changes nothing.

    A lease or an assignment must have ended: nothing may end without its holder being told. Only
    its droid deletes one, who assigned it, `queen` or `human`. Raises `NotFound`, `Conflict`, or
    `NotYours`.
    """
    kind, fields = hive.find(identifier)
    if kind == "messages":
        return hive.messages.delete(str(fields["id"]))
    with hive.transaction() as tx:
        found = hive.state(kind).get(str(fields["id"])) or {}
        record = kind_of(kind).view(found)
        if record.deleted:
            return record
        now = as_of(found, tx.now_ms).fields if kind == "reservations" else found
        if now.get("status") == "active":
            subject = str(found.get("issue_id" if kind == "assignments" else "pattern"))
            hint = suggested(_ENDING[kind], subject)
            raise Conflict(f"{record.id} is active: end it first", hint=hint, id=record.id)
        owners = [found.get(name) for name in _OWNERS.get(kind, ())]
        if hive.actor not in (*owners, *_EVERYBODYS):
            raise NotYours(f"{record.id} is {owners[0]}'s", owner=owners[0])
        gone = {"deleted": True, "deleted_at": tx.now, "deleted_by": hive.actor}
        return kind_of(kind).view(tx.update(kind, record.id, gone))
