"""All errors of QueenBee: one hierarchy that every layer imports and that imports nothing.

An error names the thing and the reason; its hint names the next command. Data for callers are
attributes, declared with their types, so that nobody has to parse the text. `code` is stable.
`queenbee.cli.exits` alone decides the exit status of each class.
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False  # Not typing's: a further edit loads this module.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NotRequired, TypedDict

    class HolderForm(TypedDict):
        """A live lease that is in the way: of whom, on what, until when, and where both meet."""

        id: str
        droid: str
        pattern: str
        exclusive: bool
        issue_id: str | None
        reason: str | None
        expires_at: str
        seconds_left: int
        asked: str
        """The pattern that was refused."""
        witness: str
        """A path in both patterns."""

    class WaiterForm(TypedDict):
        """Somebody who waits longer, and is served first."""

        droid: str
        since: str
        until: str
        pid: int
        issue_id: NotRequired[str]
        any_issue: NotRequired[bool]
        patterns: NotRequired[list[str]]
        exclusive: NotRequired[bool]
        tree_id: NotRequired[str]

else:
    HolderForm = WaiterForm = dict

__all__ = [
    "Ambiguous",
    "BadPattern",
    "Busy",
    "Cancelled",
    "Conflict",
    "DurabilityUnknown",
    "ExternalFailure",
    "Held",
    "HolderForm",
    "InvalidInput",
    "IssueClosed",
    "NoActor",
    "NoHive",
    "NotFound",
    "NotReady",
    "NotYours",
    "NothingLands",
    "OutcomeUnknown",
    "QueenError",
    "StoreError",
    "Taken",
    "UnknownCaller",
    "UnknownDroid",
    "Unreachable",
    "Unreadable",
    "Untrusted",
    "Unwritable",
    "WaiterForm",
]


class QueenError(Exception):
    """The base class of all errors.

    `message` names the thing and the reason, `hint` the next command (or None). Other
    keyword arguments become attributes and the `details` of the JSON form.
    """

    code = "error"

    def __init__(self, message: str, *, hint: str | None = None, **details: object) -> None:
        super().__init__(message)
        self.__dict__.update(details)
        self.message = message
        self.hint = hint
        self.details = details

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls on a hive that do what the hint's commands do: `reservations.check`."""
        from queenbee.next_calls import calls_in  # noqa: PLC0415 - start-up

        return calls_in(self.hint or "")

    def __str__(self) -> str:
        return self.message  # Who passes an error on may have added to it.

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
    kind: type[QueenError], args: tuple[object, ...], state: Mapping[str, object]
) -> QueenError:
    """Returns an error that another process raised: its class may be built from other arguments."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InvalidInput(QueenError):
    """The request itself is wrong: nothing was looked up or written."""

    code = "invalid_input"


class BadPattern(InvalidInput):
    """A glob pattern that cannot be used; `pattern`, `column` (from 1) and `reason` say where."""

    code = "bad_pattern"
    pattern: str
    column: int
    reason: str

    def __init__(self, pattern: str, column: int, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"pattern {pattern!r} is not usable: {reason} (column {column})",
            hint=hint,
            pattern=pattern,
            column=column,
            reason=reason,
        )


class Ambiguous(InvalidInput):
    """A part of an id that several ids have; `candidates` lists some of them."""

    code = "ambiguous"
    candidates: Sequence[str] = ()


class NoActor(InvalidInput):
    """The command needs an actor, and none is set."""

    code = "no_actor"


class NotFound(QueenError):
    """The named thing does not exist."""

    code = "not_found"
    issue_id: str | None = None
    path: str | None = None


class NoHive(NotFound):
    """No `.beads/` was found for this directory."""

    code = "no_hive"


class UnknownDroid(NotFound):
    """A droid name that is not in this hive's list of droids."""

    code = "unknown_droid"
    droid: str = ""
    known: Sequence[str] = ()


class Conflict(QueenError):
    """The request is valid, but somebody else's claim or the current state prevents it."""

    code = "conflict"


class Held(Conflict):
    """Live reservations of others overlap the request; `holders` lists them."""

    code = "held"
    holders: Sequence[HolderForm] = ()
    ends_ms: int | None = None
    """When the first of them ends, in ms since 1970."""
    may_share: bool = False
    """Whether a shared lease would be granted."""
    ahead: Sequence[WaiterForm] = ()
    place: int | None = None
    """The place in the line of who asks, from 1."""
    circle: Sequence[str] = ()
    """The droids each of which would wait for the next one, and the last for the first."""


class Taken(Conflict):
    """The issue is assigned to another droid; `assignment` is the active record."""

    code = "taken"
    holder: str = ""
    assignment: Mapping[str, Any] | None = None


class NotYours(Conflict):
    """The record belongs to another droid; `owner` names it."""

    code = "not_yours"
    owner: str = ""
    assignment: Mapping[str, Any] | None = None
    reservation: Mapping[str, Any] | None = None


class IssueClosed(Conflict):
    """An issue that is closed, or was completed in the hive, cannot be claimed."""

    code = "issue_closed"
    issue_id: str = ""


class NotReady(Conflict):
    """The issue waits for others, which `waits_for` lists, or something else holds it back."""

    code = "not_ready"
    issue_id: str = ""
    waits_for: Sequence[str] = ()


class UnknownCaller(Conflict):
    """Whether a person asks, or an agent of a team at work, cannot be told from here."""

    code = "unknown_caller"


class Untrusted(Conflict):
    """A command that came from elsewhere waits until a person here has seen it; `commands` lists
    all of them.
    """

    code = "untrusted"
    commands: Sequence[Mapping[str, Any]] = ()


class NothingLands(QueenError):
    """Nothing can land, whoever lands it: it is nobody's fault, and somebody has to mend that."""

    code = "cannot_land"
    hindrances: Sequence[Mapping[str, Any]] = ()


class Busy(QueenError):
    """A lock or a wait timed out; nothing was written, and it is safe to retry."""

    code = "busy"
    lock: str | None = None
    holder: str | Mapping[str, Any] | None = None
    """Who has the issue; or the process that has the lock: `holder`, its name, and `pid`."""
    assignment: Mapping[str, Any] | None = None
    holders: Sequence[HolderForm] = ()
    ends_ms: int | None = None
    ahead: Sequence[WaiterForm] = ()
    place: int | None = None
    circle: Sequence[str] = ()


class Cancelled(QueenError):
    """The caller gave the call up before it was done; nothing was written."""

    code = "cancelled"


class Unreachable(Busy):
    """Another machine does not answer; nothing was granted, and it is safe to retry."""

    code = "unreachable"
    remote: str | None = None


class StoreError(QueenError):
    """A store or document that cannot be read or written safely."""

    code = "store"
    path: str | None = None


class Unreadable(StoreError):
    """A file or document that cannot be read safely."""

    code = "unreadable"


class Unwritable(StoreError):
    """A file or folder that cannot be written; nothing was recorded."""

    code = "unwritable"


class DurabilityUnknown(StoreError):
    """The write is done, but the disk did not confirm it: it may not survive a power cut."""

    code = "durability_unknown"


class OutcomeUnknown(StoreError):
    """The connection was lost during a write, and nobody can say whether it is recorded."""

    code = "outcome_unknown"


class ExternalFailure(QueenError):
    """A program that QueenBee ran failed."""

    code = "external"
    program: str | None = None


class MissingPackage(ExternalFailure):
    """A package that is needed here is not installed; `package` and `extra` name it."""

    code = "missing_package"
    package: str = ""
    extra: str = ""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> MissingPackage:
        """Returns the refusal of `what`, such as "queen mcp", for which `package` is missing."""
        return cls(
            f"{what} needs the Python package {package}",
            hint=f"pip install 'queenbee-hive[{extra}]', or as queen was installed: uv tool "
            f"install, pipx install --force; in a clone: pip install '.[{extra}]'",
            package=package.split(" ")[0],
            extra=extra,
        )


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_NOT_WRITABLE = (*_FULL, errno.EACCES, errno.EPERM)
_EXHAUSTED = (*_FULL, errno.EIO, errno.EMFILE, errno.ENFILE)
"""What no program can prevent, wherever it happens: a write names no file."""


class Bug(QueenError):
    """An unexpected error: a bug in QueenBee."""

    code = "bug"

    @classmethod
    def of(cls, error: Exception) -> QueenError:
        """Returns the refusal that reports an error which nobody expected, or that the system lets
        nobody write there.
        """
        if isinstance(error, OSError) and error.errno in _NOT_WRITABLE and error.filename:
            path = str(error.filename)
            said = f"{path} cannot be read or written: {error.strerror}"
            return Unwritable(
                said, hint="make room there, or let this process write there", path=path
            )
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            said = f"{error.filename or 'a file'} cannot be read or written: {error.strerror}"
            return Unwritable(said, hint="df . shows the room, ulimit -a the limits")
        return cls(
            f"a bug in queen: {type(error).__name__}: {error}",
            hint="run it again with QUEEN_DEBUG=1 and report what it prints",
        )
