"""What is wrong with the place where a hive's lines are kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with where the lines are kept; a value, for `queen doctor`."""

    code: str
    place: str
    """A file, or where the database is."""
    message: str
    hint: str | None = None
    severity: str = "error"
    """`error` or `note`, as in `services.diagnosis`."""
