"""What is wrong with the place where a hive's lines are kept."""

from __future__ import annotations


class Fault:
    """One thing that is wrong with where the lines are kept; a value, for `queen doctor`."""

    __slots__ = ("code", "hint", "message", "place", "severity")

    def __init__(
        self,
        code: str,
        place: str,
        message: str,
        *,
        hint: str | None = None,
        severity: str = "error",
    ) -> None:
        self.code = code
        self.place = place
        """A file, or where the database is."""
        self.message = message
        self.hint = hint
        self.severity = severity
        """`error` or `note`, as in `services.diagnosis`."""
