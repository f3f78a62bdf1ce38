"""Typed views of folded records: messages, assignments, reservations. They are values.

A record wraps the folded fields, so unknown ones survive. A field that is absent or has another
type reads as its default. `docs/format.md`, section "Records".
"""

from __future__ import annotations

from queenbee.core.names import EVERYONE, is_commit_id
from queenbee.core.reviews.review import REVIEW, Review
from queenbee.core.timestamps import instant_ms

_MOST_TOKEN = 2**53 - 1
READ = "read_at"
ACKED = "acked_at"

_Fields = type(vars(type))
"""A mapping that cannot be changed: `types.MappingProxyType`, which need not be loaded for it."""

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    Importance = Literal["low", "normal", "high", "urgent"]
    AssignmentStatus = Literal["active", "completed", "released", "reassigned"]

IMPORTANCES = ("low", "normal", "high", "urgent")
ASSIGNMENT_STATUSES = ("active", "completed", "released", "reassigned")


def mark_of(droid: str, name: str) -> str:
    """Returns the field of a message to everyone in which one droid marks it: `ui:read_at`.

    Each droid has fields of its own, so marks made in two clones both survive the fold.
    """
    return f"{droid}:{name}"


class Ids:
    """A field that holds a list of ids."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __get__(self, record: Record, owner: type | None = None) -> tuple[str, ...]:
        value = record._fields.get(self.name)
        if not isinstance(value, list):
            return ()
        return tuple(each for each in value if isinstance(each, str))


_NOTE_MS = 24 * 3_600_000
"""What was said a day ago was done, or forgotten."""


class Text:
    """A field that holds text, and reads as the default if it does not."""

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: str = "") -> None:
        self.name: str = name
        self.default: str = default

    def __get__(self, record: Record, owner: type | None = None) -> str:
        value = record._fields.get(self.name)
        return value if isinstance(value, str) else self.default


class OptionalText:
    """A field that holds text or is absent."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __get__(self, record: Record, owner: type | None = None) -> str | None:
        value = record._fields.get(self.name)
        return value if isinstance(value, str) else None


class Commit(OptionalText):
    """A field that holds the id of a commit, or is absent: a record that came may say anything."""

    __slots__ = ()

    def __get__(self, record: Record, owner: type | None = None) -> str | None:
        said = super().__get__(record, owner)
        return said if is_commit_id(said) else None


class Flag:
    """A field that is true or false; only JSON's own values count."""

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: bool = False) -> None:
        self.name: str = name
        self.default: bool = default

    def __get__(self, record: Record, owner: type | None = None) -> bool:
        value = record._fields.get(self.name)
        return value if isinstance(value, bool) else self.default


def _apart(value: object) -> object:
    """Returns a value of a field that can be changed without changing the record."""
    if isinstance(value, dict):
        return {name: _apart(each) for name, each in value.items()}
    return [_apart(each) for each in value] if isinstance(value, list) else value


class Record:
    """The folded state of one id: a value, which nothing changes. It can be compared, hashed,
    copied and pickled; two are equal when their fields are.
    """

    __slots__ = ("_fields",)

    _fields: Mapping[str, object]
    _shown: tuple[str, ...] = ()
    """The fields that its `repr` shows, between the id and the revision."""
    id: Text = Text("id")
    created_at: Text = Text("created_at")
    deleted: Flag = Flag("deleted")

    def __init__(self, fields: Mapping[str, object]) -> None:
        object.__setattr__(self, "_fields", fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is a value: {name} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is a value: {name} cannot be deleted")

    @property
    def fields(self) -> Mapping[str, object]:
        """All fields, unknown ones included. What is in it is a copy."""
        return _Fields({name: _apart(value) for name, value in self._fields.items()})

    def get(self, name: str) -> object:
        """Returns the value of a field, known here or not; None if it is absent."""
        value = self._fields.get(name)
        return _apart(value) if isinstance(value, (dict, list)) else value

    @property
    def rev(self) -> int:
        """The revision of the newest line: 1 on creation, one more with each update."""
        rev = self._fields.get("rev")
        return rev if isinstance(rev, int) else 1

    @property
    def created_ms(self) -> int:
        """When the record was created, in ms since 1970; 0 if that is not readable."""
        return instant_ms(self._fields.get("created_at")) or 0

    @property
    def age(self) -> tuple[int, str]:
        """The key that sorts records by age, oldest first: the same in every clone."""
        return self.created_ms, self.id

    def to_dict(self) -> dict[str, object]:
        """Returns the fields as a new dict, unknown ones included, `rev` last."""
        fields = {name: _apart(value) for name, value in self._fields.items() if name != "rev"}
        return {**fields, "rev": self.rev}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other._fields == self._fields

    def __hash__(self) -> int:
        return hash((self.id, self.rev))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), ({**self._fields},)

    def __repr__(self) -> str:
        shown = ("id", *self._shown)
        said = [f"{name}={self._fields[name]!r}" for name in shown if name in self._fields]
        return f"{type(self).__name__}({', '.join(said)}, rev={self.rev})"


class Message(Record):
    """A message from one droid to another. `spec` section "Message Record"."""

    __slots__ = ()
    _shown = ("from", "to", "subject")

    from_: Text = Text("from")
    to: Text = Text("to")
    subject: Text = Text("subject")
    body: Text = Text("body")
    issue_id: OptionalText = OptionalText("issue_id")
    reply_to: OptionalText = OptionalText("reply_to")
    thread_id: OptionalText = OptionalText("thread_id")
    importance: Text = Text("importance", "normal")
    read: Flag = Flag("read")
    read_at: OptionalText = OptionalText("read_at")
    by_hive: Flag = Flag("by_hive")
    """Whether the hive wrote it itself, about what its sender did."""
    ack_by: OptionalText = OptionalText("ack_by")
    """The time by which the sender wants an acknowledgement; absent if none is wanted."""
    acked_at: OptionalText = OptionalText("acked_at")

    @property
    def wants_answer(self) -> bool:
        """Whether it asks for an acknowledgement that it has not got."""
        return self.ack_by is not None and not self.acked_at

    @property
    def thread(self) -> str:
        """The id of the thread's first message, which may be this one."""
        return self.thread_id or self.id

    @property
    def readers(self) -> list[str]:
        """The droids that read a broadcast, sorted."""
        names = (name.partition(":") for name in self._fields)
        return sorted(droid for droid, colon, mark in names if colon and mark == READ)

    def seen_by(self, droid: str) -> Message:
        """Returns a message to everyone as one droid sees it, with its own marks as `read`,
        `read_at` and `acked_at`; any other message unchanged.
        """
        if self.to != EVERYONE or self.from_ == droid:
            return self
        marks = {name: self._fields.get(mark_of(droid, name)) for name in (READ, ACKED)}
        own = {name: at for name, at in marks.items() if isinstance(at, str)}
        shared = {name: at for name, at in self._fields.items() if name not in marks}
        return Message({**shared, "read": READ in own, **own})


class Grant(Record):
    """What assignments and reservations have in common."""

    __slots__ = ()

    clone: OptionalText = OptionalText("clone")
    """The clone in which a grant was made that the remote confirmed, or is to confirm."""

    @property
    def token(self) -> int:
        """The number of the remote's commit that confirmed this grant; 0 if none did.

        Of two grants on one thing, the later one has the larger number, whatever the clocks.
        """
        token = self._fields.get("token")
        return token if type(token) is int and 0 < token <= _MOST_TOKEN else 0

    @property
    def unconfirmed(self) -> bool:
        """Whether a confirmation was asked for that no remote has given."""
        return self._fields.get("unconfirmed") is True and not self.token


class Assignment(Grant):
    """Which droid works on which issue. `spec` section "Assignment Record"."""

    __slots__ = ()
    _shown = ("issue_id", "droid", "status")

    updated_at: Text = Text("updated_at")
    issue_id: Text = Text("issue_id")
    droid: Text = Text("droid")
    assigned_by: Text = Text("assigned_by")
    status: Text = Text("status", "active")
    worktree: OptionalText = OptionalText("worktree")
    tree_id: OptionalText = OptionalText("tree_id")
    """The linked worktree in which it was claimed, by the id that the tree keeps."""
    reason: OptionalText = OptionalText("reason")
    previous_droid: OptionalText = OptionalText("previous_droid")
    landed: Commit = Commit("landed")
    """The commit on the main branch that has its work."""
    superseded_by: OptionalText = OptionalText("superseded_by")
    follows: Ids = Ids("follows")
    """Ended grants that this one was made after, although their end is dated later."""
    outranks: Ids = Ids("outranks")
    """Grants superseded by this one although they began after its corrected end."""

    @property
    def review(self) -> Review | None:
        """The pull request that proposes its work; None if none does."""
        said = self.fields.get(REVIEW)
        return Review.of(said) if said is not None else None

    def note(self, now_ms: int) -> str:
        """Returns what the droid does beside the issue, as it said within a day; else nothing."""
        text, noted_ms = self._fields.get("note"), instant_ms(self._fields.get("noted_at"))
        fresh = noted_ms is not None and now_ms - noted_ms < _NOTE_MS
        return text if fresh and isinstance(text, str) else ""


class Reservation(Grant):
    """A lease on a glob pattern. `spec` section "Reservation Record"."""

    __slots__ = ()
    _shown = ("pattern", "droid", "status", "expires_at")

    expires_at: Text = Text("expires_at")
    released_at: OptionalText = OptionalText("released_at")
    pattern: Text = Text("pattern")
    droid: Text = Text("droid")
    issue_id: OptionalText = OptionalText("issue_id")
    status: Text = Text("status", "active")
    exclusive: Flag = Flag("exclusive", default=True)
    reason: OptionalText = OptionalText("reason")
    session: OptionalText = OptionalText("session")
    worktree: OptionalText = OptionalText("worktree")
    tree_id: OptionalText = OptionalText("tree_id")
    """The working tree of an edit or an announcement, by the id that the tree keeps."""
    branch: OptionalText = OptionalText("branch")
    superseded_by: OptionalText = OptionalText("superseded_by")
    follows: Ids = Ids("follows")
    """Ended grants that this one was made after, although their end is dated later."""
    outranks: Ids = Ids("outranks")
    """Grants superseded by this one although they began after its corrected end."""

    @property
    def mode(self) -> str:
        """`exclusive`, `shared` by those who edit in other working trees, or `read`."""
        return "exclusive" if self.exclusive else "shared" if self.tree_id else "read"

    @property
    def takes_over(self) -> Mapping[str, str]:
        """The leases that end once this one is confirmed, by id, each with the reason."""
        said = self._fields.get("takes_over")
        if not isinstance(said, dict):
            return {}
        return {each: str(reason) for each, reason in said.items()}

    @property
    def expires_ms(self) -> int:
        """When the lease ends, in ms since 1970; 0 if that is not readable."""
        return instant_ms(self._fields.get("expires_at")) or 0
