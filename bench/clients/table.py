"""The table of what works in which client, on the screen and between two marks of a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bench.clients.cells import Cell, Findings

BEGIN = "<!-- clients: begin (`make clients` writes what follows) -->"
END = "<!-- clients: end -->"
NOT_RUN = "–"
_LONGEST = 150


class Ran(NamedTuple):
    """A client at a version: its cells by rows, or why it was not run."""

    title: str
    version: str
    cells: Findings
    skipped: str = ""


def text(ran: Sequence[Ran], date: str) -> str:
    """Returns a table of the newest versions and one of the older, and what failed below them."""
    shown = [each for each in ran if not each.skipped]
    newest = list({each.title: each for each in reversed(shown)}.values())[::-1]
    older = [each for each in shown if each not in newest]
    lines = [*_table(newest), *([""] if older else []), *_table(older), "", f"Run on {date}."]
    skipped = [each for each in ran if each.skipped]
    lines += [f"{each.title} {each.version} was skipped: {each.skipped}." for each in skipped]
    notes = [
        f"- {each.title} {each.version}, {row}: {_plain(cell.remark)}"
        for each in shown
        for row, cell in each.cells.items()
        if not cell.held
    ]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _table(ran: Sequence[Ran]) -> list[str]:
    if not ran:
        return []
    whole = sorted((each.cells for each in ran), key=len, reverse=True)
    rows = list(dict.fromkeys(row for cells in whole for row in cells))
    lines = ["| " + " | ".join(["", *(f"{each.title} {each.version}" for each in ran)]) + " |"]
    lines.append("|---" * (len(ran) + 1) + "|")
    cells = {row: [_cell(each.cells.get(row)) for each in ran] for row in rows}
    return lines + ["| " + " | ".join([row, *cells[row]]) + " |" for row in rows]


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return NOT_RUN
    if cell.held is None:
        return "not offered"
    if not cell.held:
        return "**no**"
    if not cell.remark:
        return "yes"
    return cell.remark if cell.remark[0].isdigit() else f"yes ({_plain(cell.remark)})"


def _plain(remark: str) -> str:
    """Returns a remark that cannot break the page, and names no folder of this machine."""
    safe = re.sub(r"/\S+?/(?=(repo|home|linked|tree-\d)\b)", "", " ".join(remark.split()))
    safe = safe.replace("|", "/").replace("<", "‹").replace(">", "›")
    return safe if len(safe) <= _LONGEST else safe[: _LONGEST - 1] + "…"


def written(page: str, table: str) -> str:
    """Returns a page with a table between its marks, and every other byte as it was.

    Raises `ValueError` if the page does not have each mark once.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError("the page must have both marks once: " + BEGIN)
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.split(END)[1]}"
