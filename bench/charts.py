"""Charts of the benchmarks, as SVG, by matplotlib (the `bench` extra)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.results import Row

Series = dict[str, list[tuple[int, float]]]


def growth(series: Series, folder: str) -> None:
    """Writes growth.svg: how the cost of a command grows with the number of messages."""
    _draw(
        series,
        os.path.join(folder, "growth.svg"),
        "whole process, in multiples of `import click`",
        line_at=1,
    )


def commits(series: Series, folder: str) -> None:
    """Writes commits.svg: how the commit of a busy day grows with the number of messages."""
    _draw(series, os.path.join(folder, "commits.svg"), "`git add` and `git commit`, seconds")


def peers(rows: Sequence[Row], folder: str) -> None:
    """Writes peers.svg: what a reservation takes with so many live, by tool."""
    found: Series = {}
    for row in rows:
        what, _, tool = row.name.partition(": ")
        work, _, live = what.partition(", ")
        if work == "reserve":
            found.setdefault(tool, []).append((int(live.split()[0].replace(",", "")), row.value))
    path = os.path.join(folder, "peers.svg")
    _draw(found, path, "one reservation, ms", along="live reservations")


def _draw(
    series: Series,
    path: str,
    label: str,
    *,
    line_at: float | None = None,
    along: str = "messages in the hive",
) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "queenbee"
    from matplotlib import pyplot

    os.makedirs(os.path.dirname(path), exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, points in series.items():
        sizes, values = zip(*[(max(size, 1), value) for size, value in points], strict=True)
        axes.plot(sizes, values, marker="o", label=name)
    axes.set_xscale("symlog")
    axes.set_yscale("log")
    axes.set_xlabel(along)
    axes.set_ylabel(label)
    if line_at is not None:
        axes.axhline(line_at, color="grey", linewidth=0.5)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
