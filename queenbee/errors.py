"""All errors of QueenBee: one hierarchy that every layer imports and that imports nothing.

An error names the thing and the reason; its hint names the next command. Data for callers are
attributes, so that nobody has to parse the text. `code` is stable. `queenbee.cli.exits` alone
decides the exit status of each class.
"""

from __future__ import annotations

import errno

__all__ = [
    "Ambiguous",
    "BadPattern",
    "Busy",
    "Conflict",
    "DurabilityUnknown",
    "ExternalFailure",
    "Held",
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
]


class QueenError(Exception):
    """The base class of all errors.

    `message` names the thing and the reason, `hint` the next command (or None). Other
    keyword arguments become attributes and the `details` of the JSON form.
    """

    code = "error"

    def __init__(self, message: str, *, hint: str | None = None, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    def __str__(self) -> str:
        return self.message  # Who passes an error on may have added to it.

    def __getattr__(self, name: str) -> object:
        details = self.__dict__.get("details", {})
        if name in details:
            return details[name]
        raise AttributeError(name)


class InvalidInput(QueenError):
    """The request itself is wrong: nothing was looked up or written."""

    code = "invalid_input"


class BadPattern(InvalidInput):
    """A glob pattern that cannot be used; `pattern`, `column` (from 1) and `reason` say where."""

    code = "bad_pattern"

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


class NoActor(InvalidInput):
    """The command needs an actor, and none is set."""

    code = "no_actor"


class NotFound(QueenError):
    """The named thing does not exist."""

    code = "not_found"


class NoHive(NotFound):
    """No `.beads/` was found for this directory."""

    code = "no_hive"


class UnknownDroid(NotFound):
    """A droid name that is not in this hive's list of droids."""

    code = "unknown_droid"


class Conflict(QueenError):
    """The request is valid, but somebody else's claim or the current state prevents it."""

    code = "conflict"


class Held(Conflict):
    """Live reservations of others overlap the request; `holders` lists them."""

    code = "held"


class Taken(Conflict):
    """The issue is assigned to another droid; `assignment` is the active record."""

    code = "taken"


class NotYours(Conflict):
    """The record belongs to another droid; `owner` names it."""

    code = "not_yours"


class IssueClosed(Conflict):
    """An issue that is closed, or was completed in the hive, cannot be claimed."""

    code = "issue_closed"


class NotReady(Conflict):
    """The issue waits for others, which `waits_for` lists, or something else holds it back."""

    code = "not_ready"


class UnknownCaller(Conflict):
    """Whether a person asks, or an agent of a team at work, cannot be told from here."""

    code = "unknown_caller"


class Untrusted(Conflict):
    """A command that came from elsewhere waits until a person here has seen it; `commands` lists
    all of them.
    """

    code = "untrusted"


class NothingLands(QueenError):
    """Nothing can land, whoever lands it: it is nobody's fault, and somebody has to mend that."""

    code = "cannot_land"


class Busy(QueenError):
    """A lock or a wait timed out; nothing was written, and it is safe to retry."""

    code = "busy"


class Unreachable(Busy):
    """Another machine does not answer; nothing was granted, and it is safe to retry."""

    code = "unreachable"


class StoreError(QueenError):
    """A store or document that cannot be read or written safely."""

    code = "store"


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


class MissingPackage(ExternalFailure):
    """A package that is needed here is not installed; `package` and `extra` name it."""

    code = "missing_package"

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> MissingPackage:
        """Returns the refusal of `what`, such as "queen mcp", for which `package` is missing."""
        return cls(
            f"{what} needs the Python package {package}",
            hint=f"pip install 'queenbee-hive[{extra}]', or in a clone: pip install '.[{extra}]'",
            package=package.split(" ")[0],
            extra=extra,
        )


_NOT_WRITABLE = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM)
_EXHAUSTED = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
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
            return Unwritable(said, hint="df . shows the room, ulimit -n the open files")
        return cls(
            f"a bug in queen: {type(error).__name__}: {error}",
            hint="run it again with QUEEN_DEBUG=1 and report what it prints",
        )
