"""What the benchmarks found: rows, how they are printed, and the file that keeps them.

    python -m bench --json FILE

`bench.compare` reads two such files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Literal, NamedTuple

from queenbee.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Better = Literal["less", "more"]
Loop = Literal["processor", "files"]

TIMES = "x"
"""The unit of a ratio against a floor of the same run: other machines can be compared with it."""
SHARE = "of the floor"
RATIOS = (TIMES, SHARE, "of one reader", "")
DURATIONS = ("µs", "ms", "s")
"""Units that say something only beside what the machine could do then: see `bench.calibration`."""


class Row(NamedTuple):
    """One figure. `low` and `high` are None if it was measured once."""

    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    better: Better = "less"
    goal: float | None = None
    note: str = ""
    loop: Loop = "processor"
    """Which loop of the calibration does the same kind of work."""

    def __str__(self) -> str:
        """Returns the figure as the tables print it."""
        text = f"{digits(self.value)} {self.unit}".rstrip()
        if self.low is not None and self.high is not None:
            text += f" ({digits(self.low)} to {digits(self.high)})"
        if self.goal is not None:
            text += f", goal {digits(self.goal)}"
        return f"{text}; {self.note}" if self.note else text


def of(
    name: str,
    values: Sequence[float],
    unit: str,
    *,
    better: Better = "less",
    goal: float | None = None,
    note: str = "",
    loop: Loop = "processor",
) -> Row:
    """Returns the row of several measurements: their median, and the 10th and 90th percentile."""
    ordered = sorted(values)
    middle = statistics.median(ordered)
    if len(ordered) == 1:
        return Row(name, middle, unit, None, None, better, goal, note, loop)
    tenth = len(ordered) // 10
    low, high = ordered[tenth], ordered[-1 - tenth]
    return Row(name, middle, unit, low, high, better, goal, note, loop)


def digits(value: float) -> str:
    """Returns a number with at most three digits that say something."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.2g}"


def show(rows: Iterable[Row]) -> list[Row]:
    """Prints each row as soon as it is there; returns all of them."""
    shown = []
    for row in rows:
        print(f"  {row.name:68} {row}", flush=True)
        shown.append(row)
    return shown


def machine() -> str:
    """Returns what the figures were measured on."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def document(rows: Sequence[Row]) -> dict[str, object]:
    """Returns the rows with where and when they were measured.

    Raises `ValueError` for two rows of one name: a comparison could not tell them apart.
    """
    names = [row.name for row in rows]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"rows with the same name: {', '.join(sorted(twice))}")
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)
    from bench import calibration  # It uses rows itself.

    return {
        "machine": machine(),
        "versions": {
            "queenbee": __version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "git": git.stdout.split()[2],
        },
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "load": round(os.getloadavg()[0], 1),
        "calibration": calibration.document(calibration.measure()),
        "rows": [row._asdict() for row in rows],
    }


def write(path: str, rows: Sequence[Row]) -> None:
    """Writes the document of the rows, and the folder if there is none."""
    found = document(rows)
    os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1, ensure_ascii=False)
        file.write("\n")


def main(figures: Callable[[], Iterable[Row]]) -> None:
    """Prints the rows of one benchmark, and writes them to the file that `--json` names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    rows = show(figures())
    if options.json:
        write(options.json, rows)


def rows_of(found: dict[str, object]) -> list[Row]:
    """Returns the rows of a document; fields that this version does not know are left out."""
    rows = found["rows"]
    assert isinstance(rows, list)
    return [Row(**{name: row[name] for name in Row._fields if name in row}) for row in rows]
