"""The services over one open store, each loaded when it is first used.

`queenbee.workflows.complete_hive.Hive` adds the documents, and `queenbee.library.hive.Hive` the
calls of the loop; the edit hook of agents uses what is here.
"""

from __future__ import annotations

from functools import cached_property

from queenbee.core.kinds import KINDS
from queenbee.core.timestamps import format_ms
from queenbee.errors import NotFound
from queenbee.services.open_store import Store

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from queenbee.core.beads import Issue
    from queenbee.core.fold import Fields
    from queenbee.core.queue import Want
    from queenbee.services.assignments import Assignments
    from queenbee.services.document_questions import Documents
    from queenbee.services.droids import Droids
    from queenbee.services.history import Revision
    from queenbee.services.issues import Issues
    from queenbee.services.leases.reservations import Reservations
    from queenbee.services.messages import Messages
    from queenbee.services.nudges import Nudges
    from queenbee.services.waiting.queue import Queue
    from queenbee.store.memory.rotation import Rotation


class Services(Store):
    """An open store with a service for each subject."""

    @cached_property
    def messages(self) -> Messages:
        """Messages between droids."""
        from queenbee.services.messages import Messages  # noqa: PLC0415 - start-up

        return Messages(self, self.droids, check_issue=self._check_issue)

    @cached_property
    def assignments(self) -> Assignments:
        """Who works on which issue."""
        from queenbee.services.assignments import Assignments  # noqa: PLC0415 - start-up

        return Assignments(
            self,
            known=self._check_described,
            claimable=self._check_claimable,
            tracked=self._tracked_issue,
            queue=lambda: self.queue,
            nudges=lambda: self.nudges,
            reservations=lambda: self.reservations,
        )

    @cached_property
    def reservations(self) -> Reservations:
        """Who edits where."""
        from queenbee.services.leases.reservations import Reservations  # noqa: PLC0415 - start-up

        return Reservations(
            self,
            queue=lambda: self.queue,
            droids=lambda: self.droids,
            nudges=lambda: self.nudges,
            check_issue=self._check_issue,
            own_issue=self._own_issue,
        )

    @cached_property
    def queue(self) -> Queue:
        """Who waits for what, in the order in which they are served."""
        from queenbee.services.waiting.queue import Queue  # noqa: PLC0415 - start-up

        return Queue(self, fold_case=lambda: self.reservations.fold_case, holders=self.holders)

    @cached_property
    def nudges(self) -> Nudges:
        """Asking droids that have gone quiet, and taking over from those that do not answer."""
        from queenbee.services.nudges import Nudges  # noqa: PLC0415 - start-up

        return Nudges(self, self.droids, holdings=self._holdings)

    @cached_property
    def issues(self) -> Issues:
        """The tracker's issues, read only."""
        from queenbee.services.issues import Issues  # noqa: PLC0415 - start-up

        return Issues(self, self.documents, assignments=lambda: self.assignments)

    @cached_property
    def documents(self) -> Documents:
        """The documents that say more about issues than the tracker; none here (ADR 0008)."""
        from queenbee.services.document_questions import Documents  # noqa: PLC0415 - start-up

        return Documents()

    @cached_property
    def droids(self) -> Droids:
        """The names that this hive knows."""
        from queenbee.services.droids import Droids  # noqa: PLC0415 - start-up

        return Droids(self)

    def holders(self, want: Want, droid: str) -> list[str]:
        """Returns the other droids that hold what this one wants."""
        found = self.reservations.holders_against(want, droid) if want.patterns else []
        if want.issue_id is not None:
            held = self.assignments.active(want.issue_id)
            found += [held.droid] if held is not None and held.droid != droid else []
        return found

    def _holdings(self, droid: str) -> tuple[list[str], list[str]]:
        patterns = [lease.pattern for lease in self.reservations.find(droid=droid)]
        return [each.issue_id for each in self.assignments.find(droid=droid)], patterns

    def _known_issues(self) -> Collection[str]:
        return self.issues.ids()

    def _referred(self, text: str) -> list[str]:
        return self.issues.referred(text)

    def _check_claimable(self, issue_id: str, droid: str, *, anyway: bool) -> Issue | None:
        return self.issues.check_claimable(issue_id, droid, anyway=anyway)

    def _check_described(self, issue_id: str, *, described: bool) -> None:
        check = self.issues.check_described if described else self.issues.check_known
        self.looked_for(lambda: check(issue_id))

    def _check_issue(self, issue_id: str) -> Issue | None:
        return self.issues.check_known(issue_id)

    def _own_issue(self) -> str | None:
        return self.assignments.only()

    def _tracked_issue(self, issue_id: str) -> Issue | None:
        return self.issues.get_or_none(issue_id)

    def find(self, identifier: str) -> tuple[str, Fields]:
        """Returns the kind and the folded fields of any record, by its id or by a part of it.

        Raises `NotFound` and `Ambiguous`.
        """
        prefix = identifier.partition("-")[0]
        known = [kind for kind in KINDS.values() if kind.prefix]
        kinds = sorted(known, key=lambda kind: kind.prefix != prefix)
        for kind in kinds:
            fields = self.state(kind.name).get(identifier)
            if fields is not None:
                return kind.name, fields
        from queenbee.services.short_ids import only, record_id  # noqa: PLC0415 - start-up

        named = {record_id(self.state(kind.name), identifier): kind.name for kind in kinds}
        named.pop(None, None)
        if named:
            whole = only(identifier, [each for each in named if each is not None])
            return named[whole], self.state(named[whole]).get(whole) or {}
        *others, last = (f"{kind.prefix}-" for kind in known)
        commands = ", ".join(kind.listed_by for kind in known)
        raise NotFound(
            f"no record has the id {identifier!r}",
            hint=f"ids begin with {', '.join(others)} or {last}; see: {commands}",
        )

    def history(self, identifier: str) -> list[Revision]:
        """Returns every line of a record in order; of an issue, those of its assignments. Raises
        `NotFound`.
        """
        from queenbee.services.history import revisions  # noqa: PLC0415 - start-up

        given = self.assignments.find(issue_id=identifier, status="all")
        if not given:
            kind, fields = self.find(identifier)
            return revisions(kind, self.state(kind).history(str(fields["id"])))
        state = self.state("assignments")
        return [one for each in given for one in revisions("assignments", state.history(each.id))]

    def issue_id(self, text: str, *, recorded: bool = False) -> str:
        """Returns the id of the issue that an id or a part of one names, or the text itself if it
        names none; `42` names `qb-42`, else what was imported as number 42. Raises `Ambiguous`.

        Where any id is allowed, a text may be the id of something new, so that only `recorded`
        looks for it, also among the issues that somebody has.
        """
        from queenbee.services.short_ids import issue_id  # noqa: PLC0415 - start-up

        return issue_id(self, self._known_issues, self._referred, text, recorded=recorded)

    def short_ids(self, kind: str, identifiers: Iterable[str]) -> dict[str, str]:
        """Returns the shortest end of each id that no other record of this kind has."""
        state = self.state(kind)
        return {identifier: state.short_id(identifier) for identifier in identifiers}

    def rotate(self, *, older_than_s: int | None = None) -> dict[str, Rotation]:
        """Moves the records that have been closed for this long (default: the setting
        `archive_after`) from the ledgers to the archive, and returns the result by kind. Raises
        `Busy`, `Unwritable`.
        """
        from queenbee.services.archiving import rotate  # noqa: PLC0415 - start-up

        return {kind: rotate(self, kind, older_than_s=older_than_s) for kind in self.kinds()}

    def committed(self, kinds: Sequence[str]) -> None:
        """Rotates the ledgers that have grown past the limit in the settings."""
        from queenbee.store.files import size_of  # noqa: PLC0415 - start-up

        limit = self.layout.settings.rotate_at_bytes if self.engine.ledgers else 0
        path = self.layout.ledger_path
        large = [kind for kind in kinds if limit and size_of(path(kind)) >= limit]
        if large:
            from queenbee.services.archiving import rotate_what_is_due  # noqa: PLC0415 - start-up

            rotate_what_is_due(self, large)

    def wrote(self) -> None:
        """Asks for the new lines to be sent to the remote, if the settings say so. Whoever confirms
        grants sends them itself.
        """
        if self.layout.settings.sync_when != "manual" and not self.grant_marks:
            from queenbee.services.unasked import request  # noqa: PLC0415 - start-up

            request(self.layout)

    def migrate(self, kind: str, name: str) -> bool:
        """Records that a ledger's schema was upgraded; returns False if it was recorded before.

        `spec` section "Migration": new fields are optional and old lines stay valid, so nothing
        is rewritten.
        """
        with self.transaction() as tx:
            if any(each.get("_migration") == name for each in self.state(kind).migrations):
                return False
            self.look({"_migration": name})
            tx.append(kind, {"_migration": name, "at": format_ms(self.now_ms())})
        return True
