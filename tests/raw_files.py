"""The bytes of a store's files, as tests of the store compare them."""

from __future__ import annotations

import os

from queenbee.store.ledger.ledger import Ledger


def record(ledger: Ledger, *lines: bytes) -> None:
    """Appends as a transaction does, without waiting for the disk."""
    ledger.append(lines).close()


def content(path: str | os.PathLike[str]) -> bytes:
    """Returns the bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def content_if_any(path: str | os.PathLike[str]) -> bytes:
    """Returns the bytes of a file, none if it does not exist."""
    return content(path) if os.path.exists(path) else b""
