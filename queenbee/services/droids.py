"""Droids: which names a hive knows, and when each was last seen."""

from __future__ import annotations

from queenbee.core.kinds import KINDS
from queenbee.core.names import ALWAYS_KNOWN, EVERYONE, NOBODYS, PERSON, QUEEN, is_name, nearest
from queenbee.core.records import READ, mark_of
from queenbee.core.timestamps import instant_ms
from queenbee.errors import UnknownDroid
from queenbee.store.droids import agent_processes, identity, presence

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.core.fold import Fields
    from queenbee.services.open_store import Store

_JUDGED = 200
"""How many of a droid's newest records of each kind say when it last wrote: the answer must not
take longer in a large hive, and what changes an older record makes a new one nearly always."""


_GRACE_MS = 5_000
"""As long as a waiter that is stopped keeps its place after the end of its wait."""


class Droids:
    """The names in `.factory/droids/`, and those that have acted in this hive."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recorded: set[str] = set()
        """Names that were found in records. They stay there, and each look brings an index up to
        date.
        """

    def listed(self) -> set[str]:
        """Returns the names that `.factory/droids/*.md` gives."""
        return identity.listed_droids(self._store.layout)

    def check(self, name: str) -> str:
        """Returns the name unchanged. Raises `InvalidInput` or `UnknownDroid`."""
        return identity.checked_droid(self._store.layout, name)

    def check_addressee(self, name: str) -> str:
        """Returns the name of a droid to write to, unchanged. Raises `UnknownDroid` for one that
        nobody in this hive bears, and names the nearest that somebody does.

        The tracker's assignees count. As long as nobody but the actor is known, any name is
        accepted: there is no other name that it could be a mistake for.
        """
        if name.lower() not in NOBODYS:
            self.check(name)
        if name in ALWAYS_KNOWN or name in self._recorded:
            return name
        if presence.is_here(self._store.layout, name) or name in self.listed():
            return name
        if self._has_written(name) or self._has_any({"to": name}):
            self._recorded.add(name)
            return name
        known = {*self.known(), *self._assignees()} - {self._store.actor}
        if name in known or known <= ALWAYS_KNOWN:
            return name
        close = EVERYONE if name.lower() in NOBODYS else nearest(name, known | ALWAYS_KNOWN)
        to_come = "for one that is to come, add --new"
        people = ", ".join(sorted((known | {PERSON}) - {QUEEN}))
        meant = f"did you mean {close!r}? or, " if close else f"known: {people}; "
        raise UnknownDroid(
            f"nobody in this hive is called {name!r}",
            hint=meant + to_come,
            droid=name,
            known=sorted(known),
        )

    def has_been_here(self, name: str) -> bool:
        """Returns whether a droid has acted in this hive, or a worktree remembers its name."""
        return presence.is_here(self._store.layout, name) or self._has_written(name)

    def _has_written(self, name: str) -> bool:
        signs = (("messages", "from"), ("assignments", "droid"), ("reservations", "droid"))
        return any(self._has_any({field: name}, kind) for kind, field in signs)

    def _has_any(self, equals: dict[str, object], kind: str = "messages") -> bool:
        return bool(self._store.state(kind).select(equals, limit=1))

    def _assignees(self) -> set[str]:
        rows = self._store.tracker().everything().values()
        names = (row.get("assignee") for row in rows)
        return {name for name in names if isinstance(name, str) and is_name(name)}

    def known(self) -> list[str]:
        """Returns every name of this hive, sorted: those listed and, if any name is allowed,
        those that sent, received or held anything, have acted on this machine, or are
        remembered by a worktree. `human` and `queen` are included if they took part.
        """
        seen = presence.names(self._store.layout)
        for kind in KINDS.values():
            for field in kind.droids:
                values = self._store.state(kind.name).distinct(field)
                seen.update(value for value in values if isinstance(value, str))
        listed = self.listed()
        if listed and self._store.layout.settings.droids != "off":
            seen &= ALWAYS_KNOWN
        return sorted({name for name in seen if is_name(name)} | listed)

    def seen_ms(self, name: str) -> int | None:
        """Returns when a droid last showed a sign of life, in ms since 1970, or None if never.

        On this machine, every command and every event of its hook is one, and so is waiting, or a
        command that its agent runs. The ledgers, with what it did elsewhere, are only asked about a
        droid that seems quiet.
        """
        now_ms = self._store.now_ms()
        here_ms = presence.last_ms(self._store.layout, name)
        settings = self._store.layout.settings
        soonest_ms = min(settings.quiet_after_s, settings.ask_after_s) * 1000
        if here_ms is not None and now_ms - here_ms < soonest_ms:
            return min(here_ms, now_ms)
        if self._waits(name):
            return now_ms
        if here_ms is not None and agent_processes.is_busy(self._store.layout, name, here_ms):
            return now_ms
        known = [each for each in (here_ms, self._written_ms(name)) if each is not None]
        return min(max(known), now_ms) if known else None

    def seen_here(self) -> dict[str, int]:
        """Returns the droids that have acted on this machine, and when last, in ms since 1970."""
        now_ms, layout = self._store.now_ms(), self._store.layout
        seen = {name: presence.last_ms(layout, name) for name in presence.names(layout)}
        return {name: min(at_ms, now_ms) for name, at_ms in seen.items() if at_ms is not None}

    def is_quiet(self, name: str) -> bool:
        """Returns whether a droid has shown no sign of life for as long as `patience_s` says."""
        seen_ms = self.seen_ms(name)
        return seen_ms is None or self._store.now_ms() - seen_ms >= self.patience_s(name) * 1000

    def patience_s(self, name: str) -> int:
        """Returns after how many seconds without a sign of life a droid counts as quiet.

        0 if its agent is known to have ended; `ask_after` if it has an issue, acts on this
        machine, and another droid waits for an issue; else `quiet_after`.
        """
        layout = self._store.layout
        if self.has_ended(name):
            return 0
        if presence.last_ms(layout, name) is not None and self.waiting_for(name):
            return min(layout.settings.ask_after_s, layout.settings.quiet_after_s)
        return layout.settings.quiet_after_s

    def silent_s(self, name: str) -> int | None:
        """Returns for how many seconds a droid has shown no sign of life, if that is at least
        `ask_after`, or if its agent has ended; else None.
        """
        seen_ms, now_ms = self.seen_ms(name), self._store.now_ms()
        silent_s = (now_ms - (seen_ms or now_ms)) // 1000
        after_s = self._store.layout.settings.ask_after_s
        return silent_s if silent_s >= after_s or self.has_ended(name) else None

    def has_ended(self, name: str) -> bool:
        """Returns whether the process of a droid's agent is known, and runs no more."""
        return agent_processes.is_gone(self._store.layout, name)

    def waiting_for(self, name: str) -> list[str]:
        """Returns the other droids that wait for an issue of this one, or for any issue while it
        has one, in the order of the line.
        """
        if not self._store.layout.may_have_waiters():
            return []
        active = {"droid": name, "status": "active"}
        mine = {row.get("issue_id") for row in self._store.state("assignments").select(active)}
        found = [
            str(fields.get("droid"))
            for fields in (self._waiters() if mine else ())
            if fields.get("any_issue") is True or fields.get("issue_id") in mine
        ]
        return list(dict.fromkeys(each for each in found if each != name))

    def _waits(self, name: str) -> bool:
        if not self._store.layout.may_have_waiters():
            return False
        return any(fields.get("droid") == name for fields in self._waiters())

    def _waiters(self) -> Iterator[Fields]:
        from queenbee.store.waiting_line import live  # noqa: PLC0415 - start-up

        now_ms = self._store.now_ms()
        for _, fields in live(self._store.layout.queue_dir):
            # One that is stopped waits no longer than it wanted to.
            if (instant_ms(fields.get("until")) or 0) + _GRACE_MS >= now_ms:
                yield fields

    def _written_ms(self, name: str) -> int | None:
        """Returns when a droid wrote the newest line of its own."""
        newest_ms: int | None = None
        for kind in KINDS.values():
            for field in dict.fromkeys(droid for droid, _ in kind.signs):
                instants = [instant for droid, instant in kind.signs if droid == field]
                state = self._store.state(kind.name)
                # Of those that it made, the newest is the last sign.
                most = 1 if instants == ["created_at"] else _JUDGED
                for row in state.select({field: name}, newest_first=True, limit=most):
                    # A lease that was taken over is no sign of whoever lost it.
                    lost = row.get("released_by", name) != name
                    for instant in instants:
                        at_ms = instant_ms(row.get(instant))
                        if at_ms is not None and not (lost and instant == "released_at"):
                            newest_ms = max(newest_ms or 0, at_ms)
        everyones = self._store.state("messages").select(
            {"to": EVERYONE}, newest_first=True, limit=_JUDGED
        )
        read_ms = [instant_ms(row.get(mark_of(name, READ))) for row in everyones]
        return max((each for each in (newest_ms, *read_ms) if each is not None), default=None)

    def joined_ms(self, name: str) -> int:
        """Returns since when a droid is in the hive, in ms since 1970: its first record, its first
        command on this machine, or the file that lists it, whichever is oldest; now if there is
        none of them.
        """
        now_ms, layout = self._store.now_ms(), self._store.layout
        signs = [now_ms, presence.since_ms(layout, name), identity.listed_since_ms(layout, name)]
        signs += [
            instant_ms(fields.get("created_at"))
            for kind in KINDS.values()
            for field in kind.droids
            for fields in self._store.state(kind.name).select({field: name}, limit=1)
        ]
        return min(sign for sign in signs if sign is not None)
