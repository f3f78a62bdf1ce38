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
    """Returns a table with a column for each client, and what failed below it.

    Of a client at two versions, the newest is first; a cell says what is otherwise in the older.
    """
    columns: dict[str, list[Ran]] = {}
    for each in ran:
        if not each.skipped:
            columns.setdefault(each.title, []).append(each)
    whole = sorted((each.cells for each in ran), key=len, reverse=True)
    rows = list(dict.fromkeys(row for cells in whole for row in cells))
    heads = [f"{title} {' / '.join(r.version for r in runs)}" for title, runs in columns.items()]
    table = [["", *heads], ["---"] * (len(heads) + 1)]
    table += [[row, *(_both(row, runs) for runs in columns.values())] for row in rows]
    lines = ["| " + " | ".join(cells) + " |" for cells in table] + ["", f"Run on {date}."]
    skipped = [each for each in ran if each.skipped]
    lines += [f"{each.title} {each.version} was skipped: {each.skipped}." for each in skipped]
    notes = _notes(ran)
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _notes(ran: Sequence[Ran]) -> list[str]:
    """Returns why rows do not hold, once for each reason of a client."""
    versions: dict[tuple[str, str], list[str]] = {}
    for each in ran:
        rows: dict[str, list[str]] = {}
        for row, cell in each.cells.items():
            if not cell.held:
                rows.setdefault(_plain(cell.remark), []).append(row)
        for why, those in rows.items():
            said = f"{'; '.join(those)}: {why}"
            versions.setdefault((each.title, said), []).append(each.version)
    return [f"- {title} {' / '.join(all_)}, {said}" for (title, said), all_ in versions.items()]


def _both(row: str, runs: Sequence[Ran]) -> str:
    """Returns a cell, with what is otherwise in the older version behind a stroke."""
    cells = [each.cells.get(row) for each in runs]
    if all(cell is not None and cell.held for cell in cells):
        return _cell(cells[0])
    return " / ".join(dict.fromkeys(_cell(cell) for cell in cells))


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
