"""Tells what became slower or faster between two runs of the benchmarks, beyond the noise.

    python -m bench --cheap --json NEW
    python -m bench.compare OLD NEW

Rows in milliseconds and the like are compared as multiples of a loop that was measured in the same
run (`bench.calibration`), so that another machine, or a busy one, is no change. Without it, they
are not compared.

A row has changed if the spreads of the two runs do not overlap and the values differ by at least
10 %. A row that was measured once, and so has no spread, has changed if one value is twice the
other. Prints what it found and judges nothing: the status is 0 whatever it says.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bench.results import DURATIONS, TIMES, Row, digits, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST = 1.1
"""A smaller change is not worth a line, however certain."""
LEAST_ONCE = 2.0


class Comparison(NamedTuple):
    """The rows of two runs, by what became of them."""

    slower: list[tuple[Row, Row]]
    faster: list[tuple[Row, Row]]
    same: list[tuple[Row, Row]]
    new: list[Row]
    gone: list[Row]
    unknown: list[tuple[Row, Row]]
    """Durations of runs of which one does not say how fast its machine was."""


Calibration = Mapping[str, object]
"""What `bench.calibration.document` returned in one run."""


def compare(
    old: Sequence[Row],
    new: Sequence[Row],
    old_loops: Calibration | None = None,
    new_loops: Calibration | None = None,
) -> Comparison:
    """Returns what changed from the old rows to the new ones, the largest changes first."""
    old_loops, new_loops = old_loops or {}, new_loops or {}
    calibrated = old_loops.get("version") == new_loops.get("version") is not None
    before = {row.name: row for row in old}
    after = {row.name: row for row in new}
    found = Comparison(
        [],
        [],
        [],
        [row for row in new if row.name not in before],
        [row for row in old if row.name not in after],
        [],
    )
    for name, row in after.items():
        if name not in before:
            continue
        pair = before[name], row
        if pair[0].unit != row.unit:
            found.gone.append(pair[0])
            found.new.append(row)
        elif row.unit in DURATIONS and not calibrated:
            found.unknown.append(pair)
        elif not beyond_noise(*(same := (measured(pair[0], old_loops), measured(row, new_loops)))):
            found.same.append(pair)
        elif (same[1].value > same[0].value) == (row.better == "less"):
            found.slower.append(pair)
        else:
            found.faster.append(pair)
    for changed in (found.slower, found.faster):
        changed.sort(key=lambda pair: -_factor(pair, old_loops, new_loops))
    return found


def measured(row: Row, loops: Calibration) -> Row:
    """Returns a duration as a multiple of the loop of its run; other rows as they are."""
    if row.unit not in DURATIONS:
        return row
    loop = loops[row.loop]
    assert isinstance(loop, dict)
    # Each end of the spread by the other end of the loop's: the true multiple is in between.
    return row._replace(
        value=row.value / loop["value"],
        low=None if row.low is None else row.low / loop["high"],
        high=None if row.high is None else row.high / loop["low"],
        unit=TIMES,
    )


def beyond_noise(old: Row, new: Row) -> bool:
    """Returns whether two values differ by more than chance would explain."""
    if None in (old.low, old.high, new.low, new.high):
        return factor(old, new) >= LEAST_ONCE
    assert old.low is not None and old.high is not None
    assert new.low is not None and new.high is not None
    apart = old.high < new.low or new.high < old.low
    return apart and factor(old, new) >= LEAST


def factor(old: Row, new: Row) -> float:
    """Returns how many times the smaller value the larger one is."""
    small, large = sorted((abs(old.value), abs(new.value)))
    if small == large:
        return 1.0
    return large / small if small else float("inf")


def _factor(pair: tuple[Row, Row], old_loops: Calibration, new_loops: Calibration) -> float:
    return factor(measured(pair[0], old_loops), measured(pair[1], new_loops))


def told(
    found: Comparison, old_loops: Calibration | None = None, new_loops: Calibration | None = None
) -> Iterator[str]:
    """Yields the lines that say what changed."""
    loops = old_loops or {}, new_loops or {}
    for word, pairs in (("slower", found.slower), ("faster", found.faster)):
        yield f"{word}: {len(pairs)}"
        for old, new in pairs:
            times = f"{_factor((old, new), *loops):.2f} x"
            how = ", by the loops of the runs" if new.unit in DURATIONS else ""
            yield f"  {new.name:68} {_spread(old)} -> {_spread(new)}, {times}{how}"
    for word, rows in (("new", found.new), ("gone", found.gone)):
        if rows:
            yield f"{word}: {len(rows)}"
            yield from (f"  {row.name:68} {_spread(row)}" for row in rows)
    yield f"within the noise: {len(found.same)}"
    if found.unknown:
        why = "a run does not say how fast its machine was"
        yield f"not comparable, since {why}: {len(found.unknown)}"


def _spread(row: Row) -> str:
    text = f"{digits(row.value)} {row.unit}".rstrip()
    if row.low is None or row.high is None:
        return text
    return f"{text} ({digits(row.low)} to {digits(row.high)})"


def _headline(name: str, found: dict[str, object]) -> str:
    versions = found["versions"]
    assert isinstance(versions, dict)
    return (
        f"{name}: queenbee {versions['queenbee']}, Python {versions['python']}, "
        f"{found['machine']}, {found['date']}, load {found['load']}"
    )


def main() -> None:
    """Prints the comparison of two files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    options = parser.parse_args()
    documents = []
    for name in ("old", "new"):
        with open(getattr(options, name), encoding="utf-8") as file:
            documents.append(json.load(file))
        print(_headline(name, documents[-1]))
    old, new = documents
    loops = old.get("calibration"), new.get("calibration")
    found = compare(rows_of(old), rows_of(new), *loops)
    for line in told(found, *loops):
        print(line)


if __name__ == "__main__":
    main()
