"""A carrier: a place that gives the lines after those that are known, and takes lines.

There are two. PostgreSQL (`postgres/postgres_carrier.py`) decides every write: all clones share
its turns.
The branch of a git remote (`git/remote/branch_carrier.py`) gets what each clone has written in a
turn of its own, and decides only about grants that it is asked to confirm. ADR 0029, 0030.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Lines = Mapping[str, Sequence[bytes]]
"""Lines by kind of record."""
Look = Callable[[str, Sequence[bytes]], Sequence[bytes]]
"""Gets the lines of a kind before a carrier does; returns those that it may have."""
Position = TypeVar("Position", contravariant=True)
"""Up to where lines are known, as the carrier counts them."""
Found = TypeVar("Found", covariant=True)
Added = TypeVar("Added", covariant=True)


class Carrier(Protocol[Position, Found, Added]):
    """A place that carries the lines of a hive between clones. Raises `Unreachable`."""

    def after(self, position: Position) -> Found:
        """Returns the lines after a position, and where they end."""

    def add(self, lines: Lines, position: Position) -> Added:
        """Adds lines after a position, all or none, unless others have added lines there."""

    def news(self, timeout_s: float) -> object:
        """Returns a value that differs once others have added lines; waits so long at most."""


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
