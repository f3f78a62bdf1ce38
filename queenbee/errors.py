"""Every way that QueenBee refuses: one hierarchy, imported by all layers, importing nothing.

An error names the thing and the reason; its hint names the next command. What a caller may
want to compute with is an attribute, never text to be parsed. `code` is stable. The exit
status of each class is decided in one place, `queenbee.cli.exits`.
"""

from __future__ import annotations

__all__ = [
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
    "NotYours",
    "QueenError",
    "StoreError",
    "Taken",
    "UnknownDroid",
    "Unreadable",
    "Unwritable",
]


class QueenError(Exception):
    """The root of every refusal.

    `message` names the thing and the reason, `hint` the next command (or None). Keyword
    arguments beyond that become attributes and the `details` of the JSON form.
    """

    code = "error"

    def __init__(self, message: str, *, hint: str | None = None, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

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


class NoActor(InvalidInput):
    """A command that needs an actor and has none."""

    code = "no_actor"


class NotFound(QueenError):
    """What was named does not exist here."""

    code = "not_found"


class NoHive(NotFound):
    """No `.beads/` was found for this directory."""

    code = "no_hive"


class UnknownDroid(NotFound):
    """A droid name that this hive's list of droids does not have."""

    code = "unknown_droid"


class Conflict(QueenError):
    """The request is well formed, but somebody else's claim or the state prevents it."""

    code = "conflict"


class Held(Conflict):
    """Somebody else's live reservation covers what was asked for; `holders` lists them."""

    code = "held"


class Taken(Conflict):
    """The issue is assigned to another droid; `assignment` is the active record."""

    code = "taken"


class NotYours(Conflict):
    """The record belongs to another droid; `owner` names it."""

    code = "not_yours"


class IssueClosed(Conflict):
    """A closed issue cannot be claimed."""

    code = "issue_closed"


class Busy(QueenError):
    """A lock or a wait ran out of time; nothing was written and a retry is safe."""

    code = "busy"


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


class ExternalFailure(QueenError):
    """A program that QueenBee ran failed."""

    code = "external"
