"""How fast this machine is now: two fixed loops, measured in the same run as the figures.

`bench.compare` divides what was measured in milliseconds by them, so that a slower machine, or a
busy one, is not taken for slower code. The loops must never change: if one does, results from
before are not comparable, and `VERSION` says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from typing import TYPE_CHECKING

from bench import results

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = 1
REPEATS = 15
_ROUNDS = 400
_FILES = 100


def measure(folder: str | None = None) -> list[results.Row]:
    """Returns what each loop takes on this machine."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        return [
            results.of("processor", _spans_ms(_compute, time.process_time), "ms"),
            results.of("files", _spans_ms(lambda: _write(place), time.perf_counter), "ms"),
        ]


def document(rows: list[results.Row]) -> dict[str, object]:
    """Returns them as a file of results keeps them: by loop, the median and the spread."""
    loops = {row.name: {"value": row.value, "low": row.low, "high": row.high} for row in rows}
    return {"version": VERSION, **loops}


def _spans_ms(act: Callable[[], None], clock: Callable[[], float]) -> list[float]:
    act()
    spans = []
    for _ in range(REPEATS):
        begin = clock()
        act()
        spans.append((clock() - begin) * 1000)
    return spans


def _compute() -> None:
    """What the code mostly does: dicts, texts, JSON, sorting, calls; nothing of QueenBee."""
    kept: dict[str, dict[str, object]] = {}
    for number in range(_ROUNDS):
        line = json.dumps({"id": f"q-{number % 97}", "rev": number, "body": "word " * 8})
        fields = json.loads(line)
        kept[fields["id"]] = {**kept.get(fields["id"], {}), **fields}
        hashlib.sha256(line.encode()).hexdigest()
    sorted(kept.values(), key=lambda each: (str(each["body"]).split()[-1], str(each["rev"])))


def _write(folder: str) -> None:
    """Makes, reads and removes small files."""
    for number in range(_FILES):
        path = os.path.join(folder, str(number))
        with open(path, "wb") as file:
            file.write(b"x" * 1000)
        with open(path, "rb") as file:
            file.read()
        os.unlink(path)
