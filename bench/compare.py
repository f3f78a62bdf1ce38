"""Tells what became slower or faster between two runs of the benchmarks, beyond the noise.

    python -m bench --cheap --json NEW
    python -m bench.compare OLD NEW

A row has changed if the spreads of the two runs do not overlap and the values differ by at least
10 %. A row that was measured once, and so has no spread, has changed if one value is twice the
other. Prints what it found and judges nothing: the status is 0 whatever it says.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, NamedTuple

from bench.results import RATIOS, Row, digits, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    elsewhere: list[tuple[Row, Row]]
    """Absolute figures of two different machines, which say nothing about the code."""


def compare(old: Sequence[Row], new: Sequence[Row], *, same_machine: bool = True) -> Comparison:
    """Returns what changed from the old rows to the new ones, the largest changes first."""
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
        elif not same_machine and row.unit not in RATIOS:
            found.elsewhere.append(pair)
        elif not beyond_noise(*pair):
            found.same.append(pair)
        elif (row.value > pair[0].value) == (row.better == "less"):
            found.slower.append(pair)
        else:
            found.faster.append(pair)
    for changed in (found.slower, found.faster):
        changed.sort(key=lambda pair: -factor(*pair))
    return found


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


def told(found: Comparison) -> Iterator[str]:
    """Yields the lines that say what changed."""
    for word, pairs in (("slower", found.slower), ("faster", found.faster)):
        yield f"{word}: {len(pairs)}"
        for old, new in pairs:
            yield f"  {new.name:68} {_spread(old)} -> {_spread(new)}, {factor(old, new):.2f} x"
    for word, rows in (("new", found.new), ("gone", found.gone)):
        if rows:
            yield f"{word}: {len(rows)}"
            yield from (f"  {row.name:68} {_spread(row)}" for row in rows)
    yield f"within the noise: {len(found.same)}"
    if found.elsewhere:
        yield f"not compared, since the machines differ: {len(found.elsewhere)}"


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
    found = compare(rows_of(old), rows_of(new), same_machine=old["machine"] == new["machine"])
    for line in told(found):
        print(line)


if __name__ == "__main__":
    main()
