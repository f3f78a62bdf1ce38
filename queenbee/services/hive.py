"""The services over one open store, each loaded when it is first used.

`queenbee.workflows.hive.Hive` adds the documents; the edit hook of agents uses what is here.
"""

from __future__ import annotations

from functools import cached_property

from queenbee.core.kinds import KINDS
from queenbee.core.timestamps import format_ms
from queenbee.errors import NotFound
from queenbee.services.store import Store
from queenbee.store.files import size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.fold import Fields
    from queenbee.services.assignments import Assignments
    from queenbee.services.documents import Documents
    from queenbee.services.droids import Droids
    from queenbee.services.history import Revision
    from queenbee.services.issues import Issues
    from queenbee.services.leases.reservations import Reservations
    from queenbee.services.messages import Messages
    from queenbee.store.ledger.rotation import Rotation


_LINES = 10
"""At most so many line numbers in a notice."""


class Services(Store):
    """An open store with a service for each subject."""

    @cached_property
    def messages(self) -> Messages:
        """Messages between droids."""
        from queenbee.services.messages import Messages  # noqa: PLC0415 - start-up

        return Messages(self, self.droids)

    @cached_property
    def assignments(self) -> Assignments:
        """Who works on which issue."""
        from queenbee.services.assignments import Assignments  # noqa: PLC0415 - start-up

        return Assignments(
            self,
            issues=lambda: self.issues,
            reservations=lambda: self.reservations,
        )

    @cached_property
    def reservations(self) -> Reservations:
        """Who edits where."""
        from queenbee.services.leases.reservations import Reservations  # noqa: PLC0415 - start-up

        return Reservations(self)

    @cached_property
    def issues(self) -> Issues:
        """The tracker's issues, read only."""
        from queenbee.services.issues import Issues  # noqa: PLC0415 - start-up

        return Issues(self, self.documents, assignments=lambda: self.assignments)

    @cached_property
    def documents(self) -> Documents:
        """The documents that say more about issues than the tracker; none here (ADR 0008)."""
        from queenbee.services.documents import Documents  # noqa: PLC0415 - start-up

        return Documents()

    @cached_property
    def droids(self) -> Droids:
        """The names that this hive knows."""
        from queenbee.services.droids import Droids  # noqa: PLC0415 - start-up

        return Droids(self)

    def find(self, identifier: str) -> tuple[str, Fields]:
        """Returns the kind and the folded fields of any record. Raises `NotFound`."""
        prefix = identifier.partition("-")[0]
        for kind in sorted(KINDS.values(), key=lambda kind: kind.prefix != prefix):
            fields = self.state(kind.name).get(identifier)
            if fields is not None:
                return kind.name, fields
        *others, last = (f"{kind.prefix}-" for kind in KINDS.values())
        commands = ", ".join(kind.listed_by for kind in KINDS.values())
        raise NotFound(
            f"no record has the id {identifier!r}",
            hint=f"ids begin with {', '.join(others)} or {last}; see: {commands}",
        )

    def history(self, identifier: str) -> list[Revision]:
        """Returns every line of a record in order. Raises `NotFound`."""
        from queenbee.services.history import revisions  # noqa: PLC0415 - start-up

        kind, _ = self.find(identifier)
        return revisions(kind, self.state(kind).history(identifier))

    def notes(self) -> list[str]:
        """Returns notices for the actor, each of them once."""
        from queenbee.services.notices import Notices  # noqa: PLC0415 - start-up

        notices = Notices(
            self, assignments=lambda: self.assignments, reservations=lambda: self.reservations
        )
        return (
            notices.take()
            + self._unread_issues()
            + [
                f"{state.unusable} of the lines in {state.ledger.path} cannot be used; "
                "they are left alone; see: queen doctor"
                for state in self.opened()
                if state.unusable
            ]
        )

    def _unread_issues(self) -> list[str]:
        issues = self.__dict__.get("issues")  # Only if the command asked for them.
        if issues is None or not issues.unusable:
            return []
        lines = ", ".join(map(str, issues.unusable_lines[:_LINES]))
        more = ", …" if issues.unusable > _LINES else ""
        text = f"{issues.unusable} of the lines in {self.layout.issues_path} cannot be read "
        text += f"({lines}{more}); what waits for an issue in them stays blocked; see: queen doctor"
        return [text]

    def rotate(self, *, older_than_s: int | None = None) -> dict[str, Rotation]:
        """Moves the records that have been closed for this long (default: the setting
        `archive_after`) from the ledgers to the archive, and returns the result by kind. Raises
        `Busy`, `Unwritable`.
        """
        from queenbee.services.rotation import rotate  # noqa: PLC0415 - start-up

        return {kind: rotate(self, kind, older_than_s=older_than_s) for kind in self.kinds()}

    def committed(self, kinds: Sequence[str]) -> None:
        """Rotates the ledgers that have grown past the limit in the settings."""
        limit = self.layout.settings.rotate_at_bytes
        path = self.layout.ledger_path
        large = [kind for kind in kinds if limit and size_of(path(kind)) >= limit]
        if large:
            from queenbee.services.rotation import rotate_what_is_due  # noqa: PLC0415 - start-up

            rotate_what_is_due(self, large)

    def migrate(self, kind: str, name: str) -> bool:
        """Records that a ledger's schema was upgraded; returns False if it was recorded before.

        `spec` section "Migration": new fields are optional and old lines stay valid, so nothing
        is rewritten.
        """
        with self.transaction() as tx:
            if any(each.get("_migration") == name for each in self.state(kind).migrations):
                return False
            tx.append(kind, {"_migration": name, "at": format_ms(self.now_ms())})
        return True
