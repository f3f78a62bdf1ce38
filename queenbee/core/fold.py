"""The fold: from the lines of a ledger to the state of each record.

The state is a function of the *set* of lines: two clones with the same lines show the same state,
in whatever order a merge put them. `docs/format.md`, section "Fold"; ADR 0001.

    lines of one id, ordered by (rev, finality, newest timestamp, digest), merged field by field

A line without `rev` gets the revision after the previous line of its id, so in a file without any
`rev` the latest line wins.
"""

from __future__ import annotations

from queenbee.core.timestamps import instant_ms

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, KeysView, Mapping

    Fields = dict[str, object]
    Stated = tuple[bytes, Fields]
    Rising = list[Stated]
    """The lines of a record that each state a greater revision than the one before."""
    Key = tuple[int, int, int, bytes]

MAX_REV = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly."""

_FLAGS = ("read", "deleted")
_SETTLED = ("created_at", *_FLAGS)
"""What earlier lines may decide."""
_FINALITY = {"active": 0, "expired": 1}
_FINAL = 2


class Line:
    """One revision of a record: its bytes as they are in the file, and its fields."""

    __slots__ = ("_key", "fields", "raw", "rev")

    def __init__(self, raw: bytes, fields: Fields, rev: int) -> None:
        self.raw: bytes = raw
        self.fields: Fields = fields
        self.rev: int = rev
        self._key: Key | None = None

    @property
    def key(self) -> Key:
        """The key that sorts the lines of an id; only computed if two have the same revision."""
        if self._key is None:
            from queenbee._hashing import sha256  # noqa: PLC0415 - start-up

            digest = sha256(self.raw).digest()
            # No revision follows the last one, so there a later line counts, whatever it says.
            finality = _finality(self.fields) if self.rev < MAX_REV else 0
            self._key = (self.rev, finality, newest_ms(self.fields), digest)
        return self._key


class Entry:
    """The lines of one id and the state that they fold to."""

    __slots__ = ("arrived", "fields", "last_rev", "lines")

    def __init__(self, line: Line) -> None:
        self.lines: list[Line] = [line]
        """In the order of the fold."""
        self.arrived: list[bytes] = [line.raw]
        """In the order of the file, which matters for lines without `rev`."""
        self.last_rev: int = line.rev
        self.fields: Fields = line.fields
        if "rev" not in self.fields or self.fields["rev"] != line.rev:
            self.fields = {**line.fields, "rev": line.rev}

    def add(self, line: Line) -> None:
        """Adds a line. A new state is a new dict: views of the old one do not change."""
        top = self.lines[-1]
        self.last_rev = line.rev
        self.arrived.append(line.raw)
        if line.rev > top.rev:
            self.lines.append(line)
            born = self.fields.get("created_at")
            self.fields = {**self.fields, **line.fields, "rev": line.rev}
            if born:
                self.fields["created_at"] = born
            return
        self.lines.append(line)
        self.lines.sort(key=lambda each: each.key)
        self.fields = merge(self.lines)

    def is_told(self, raw: bytes) -> bool:
        """Returns whether a line alone says what all lines fold to."""
        top = self.lines[-1]
        said = top.fields
        if len(self.lines) == 1 or top.raw != raw:
            return top.raw == raw
        return (
            said == self.fields
            and [*said] == [*self.fields]
            and explicit_rev(said) == top.rev
            # 1 equals true, and is none of our flags.
            and all(type(said.get(each)) is type(self.fields.get(each)) for each in _SETTLED)
        )


class Table:
    """The folded state of one ledger, by id.

    `aliases` maps field names of other programs to ours, as `{"agent": "droid"}`: a line that
    has only the other name is read as if it had ours too.
    """

    def __init__(self, aliases: Mapping[str, str] | None = None) -> None:
        self._held: dict[str, Entry | Rising | Stated] = {}
        self.aliases: Mapping[str, str] | dict[str, str] = aliases or {}

    def add_all(self, lines: Iterable[Stated], *, once: bool = False) -> list[tuple[str, bytes]]:
        """Adds usable lines, as `add` does, and returns those that the table did not have, each
        with its id.
        """
        first, held, arrived = self._held.setdefault, self._held, []
        theirs = self.aliases.keys()
        for line in lines:
            raw, fields = line
            identifier: str = fields["id"]  # type: ignore[assignment]
            rev = fields.get("rev")
            # Nearly all records of a long ledger have one line, or lines that follow each other.
            # Keeping just these makes the fold of such a ledger twice as fast.
            if type(rev) is int and 1 <= rev <= MAX_REV and fields.keys().isdisjoint(theirs):
                known = first(identifier, line)
                if known is line:
                    arrived.append((identifier, raw))
                    continue
                if not isinstance(known, Entry):
                    rising = known if isinstance(known, list) else [known]
                    if rev > rising[-1][1]["rev"]:  # type: ignore[operator]
                        rising.append(line)
                        held[identifier] = rising
                        arrived.append((identifier, raw))
                        continue
            before = self._count(identifier)
            self.add(raw, fields, once=once)
            if self._count(identifier) > before:
                arrived.append((identifier, raw))
        return arrived

    def _count(self, identifier: str) -> int:
        """Returns how many lines of a record have arrived."""
        held = self._held.get(identifier, ())
        if isinstance(held, Entry):
            return len(held.arrived)
        return len(held) if isinstance(held, list) else bool(held)

    def add(self, raw: bytes, fields: Fields, *, once: bool = False) -> str:
        """Adds a usable line and returns its id.

        `raw` is the line without its line ending. A line that the record already has
        changes nothing, except that a repeated line without `rev` counts again; with `once`
        it does not.
        """
        identifier = fields["id"]
        assert isinstance(identifier, str)
        for theirs, ours in self.aliases.items():
            if theirs in fields and ours not in fields:
                fields = {**fields, ours: fields[theirs]}
        rev = explicit_rev(fields)
        entry = self.entry(identifier)
        if entry is None:
            self._held[identifier] = Entry(Line(raw, fields, rev or 1))
            return identifier
        # A line's position matters only if it states no revision.
        if (once or rev is not None) and raw in entry.arrived:
            return identifier
        if rev is None:
            if entry.arrived[-1] == raw:
                return identifier
            rev = entry.last_rev + 1
        entry.add(Line(raw, fields, rev))
        return identifier

    def get(self, identifier: str) -> Fields | None:
        """Returns the folded fields of a record, or None."""
        return self.told(identifier, b"")[0] if identifier in self._held else None

    def told(self, identifier: str, raw: bytes) -> tuple[Fields, bool]:
        """Returns the folded fields of a record that is here, and whether this line alone says
        them: its last one to arrive.
        """
        held = self._held[identifier]
        if isinstance(held, Entry):
            return held.fields, held.is_told(raw)
        if isinstance(held, tuple):
            return held[1], held[0] == raw
        last, said = held[-1]
        fields = _follow(held)
        if fields is said:
            return fields, last == raw
        # All other fields are those of the last line.
        was, born = said.get("created_at"), fields.get("created_at")
        is_told = last == raw and (was is born or (type(was) is type(born) and was == born))
        return fields, is_told and [*fields] == [*said]

    def entry(self, identifier: str) -> Entry | None:
        """Returns the lines of a record and its state, or None."""
        held = self._held.get(identifier)
        if held is None or isinstance(held, Entry):
            return held
        first, *others = held if isinstance(held, list) else [held]
        entry = self._held[identifier] = Entry(_line(first))
        for each in others:
            entry.add(_line(each))
        return entry

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._held

    def __len__(self) -> int:
        return len(self._held)

    def ids(self) -> KeysView[str]:
        """Returns the ids, in the order of their first lines."""
        return self._held.keys()

    @property
    def entries(self) -> dict[str, Entry]:
        """Every record's lines and state, by id."""
        return {each: entry for each in self._held if (entry := self.entry(each))}

    def __iter__(self) -> Iterator[Fields]:
        return iter([fields for each in self._held if (fields := self.get(each)) is not None])


def _line(stated: Stated) -> Line:
    return Line(*stated, explicit_rev(stated[1]) or 1)


def _follow(lines: Rising) -> Fields:
    """Returns what lines fold to that each follow the one before."""
    fields = lines[0][1]
    for _, said in lines[1:]:
        born = fields.get("created_at")
        # Nearly always, a line says all that the one before said.
        if type(born) is str and born == said.get("created_at") and [*fields] == [*said]:
            fields = said
            continue
        fields = {**fields, **said}
        if born:
            fields["created_at"] = born
    return fields


def merge(lines: list[Line]) -> Fields:
    """Returns the state of one record from its lines in order.

    Among lines of the same revision, what is true stays true: `read` and `deleted` by field, and
    `status` by the order, in which a final status comes last.
    """
    state: Fields = {}
    born = next(
        (line.fields["created_at"] for line in lines if line.fields.get("created_at")), None
    )
    rev, raised = 0, set[str]()
    for line in lines:
        if line.rev != rev:
            rev, raised = line.rev, set()
        state.update(line.fields)
        raised.update(flag for flag in _FLAGS if line.fields.get(flag) is True)
        for flag in raised:
            state[flag] = True
    if born is not None:
        state["created_at"] = born
    state["rev"] = rev
    return state


def explicit_rev(fields: Mapping[str, object]) -> int | None:
    """Returns the revision that a line states, or None if it states no usable one."""
    rev = fields.get("rev")
    return rev if type(rev) is int and 1 <= rev <= MAX_REV else None


def following(rev: int) -> int:
    """Returns the revision of the next line. A line from elsewhere may have the last one: then all
    that follow have it too, since one beyond would count by its place in each clone's file.
    """
    return min(rev + 1, MAX_REV)


def newest_ms(fields: Mapping[str, object]) -> int:
    """Returns the newest timestamp among the fields whose name ends in `_at`, else -1."""
    newest = -1
    for name in fields:
        if name[-3:] == "_at" and (stamp := instant_ms(fields[name])) is not None:
            newest = max(newest, stamp)
    return newest


def _finality(fields: Mapping[str, object]) -> int:
    status = fields.get("status", "active")
    return _FINALITY.get(status, _FINAL) if isinstance(status, str) else 0
