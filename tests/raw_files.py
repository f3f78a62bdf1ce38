"""What a store's files have, as tests of the store compare it, and lines put into them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from queenbee.store.creating import init
from queenbee.store.layout import discover
from queenbee.store.memory.files_memory import FilesMemory


def content(path: str | os.PathLike[str]) -> bytes:
    """Returns the bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def record(repo: Path, kind: str, *lines: bytes) -> None:
    """Records lines as they are, as one transaction does."""
    layout = discover(str(repo), {}, must_exist=False)
    init(layout)
    memory = FilesMemory(layout)
    memory.write({kind: lines})
    memory.close()


def remembered(state: str | os.PathLike[str], kind: str) -> list[bytes]:
    """Returns the recorded lines of a kind, from the memory in a folder for state."""
    query = "SELECT raw FROM lines WHERE kind = ? AND loose = 0 ORDER BY seq"
    with closing(sqlite3.connect(Path(state) / "hive.sqlite3")) as database:
        return [raw for (raw,) in database.execute(query, (kind,))]


def tracked(beads: Path, kind: str) -> Sequence[bytes]:
    """Returns the lines of a ledger and of its archive."""
    paths = [beads / f"queen_{kind}.jsonl", *beads.glob(f"archive/queen_{kind}.*.jsonl")]
    return [line for path in paths if path.exists() for line in content(path).splitlines()]
