"""The table of what works in which client, on the screen and between two marks of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.clients.cells import Cell, Findings

BEGIN = "<!-- clients: begin (`make clients` writes what follows) -->"
END = "<!-- clients: end -->"
NOT_RUN = "–"


class Ran(NamedTuple):
    """A client at a version: its cells by rows, or why it was not run."""

    title: str
    version: str
    cells: Findings
    skipped: str = ""


def text(ran: Sequence[Ran], date: str) -> str:
    """Returns the table in Markdown, with what the failing cells found below it."""
    shown = [each for each in ran if not each.skipped]
    whole = sorted((each.cells for each in shown), key=len, reverse=True)
    rows = list(dict.fromkeys(row for cells in whole for row in cells))
    lines = ["| " + " | ".join(["", *(f"{each.title} {each.version}" for each in shown)]) + " |"]
    lines.append("|---" * (len(shown) + 1) + "|")
    notes: list[str] = []
    for row in rows:
        cells = [_cell(each.cells.get(row), each.title, row, notes) for each in shown]
        lines.append("| " + " | ".join([row, *cells]) + " |")
    lines += ["", f"Run on {date}."]
    lines += [
        f"{each.title} {each.version} was skipped: {each.skipped}." for each in ran if each.skipped
    ]
    if notes:
        lines += ["", *notes]
    return "\n".join(lines) + "\n"


def _cell(cell: Cell | None, title: str, row: str, notes: list[str]) -> str:
    if cell is None:
        return NOT_RUN
    if cell.held and not cell.remark:
        return "yes"
    if cell.held:
        return cell.remark if cell.remark[0].isdigit() else f"yes ({_plain(cell.remark)})"
    note = f"- {title}, {row}: {_plain(cell.remark)}"
    if note not in notes:
        notes.append(note)
    return "not offered" if cell.held is None else "**no**"


def _plain(remark: str) -> str:
    """Returns a remark that cannot break the table, nor the page."""
    safe = " ".join(remark.split()).replace("|", "/").replace("<", "‹").replace(">", "›")
    return safe if len(safe) <= 160 else safe[:159] + "…"


def written(page: str, table: str) -> str:
    """Returns a page with a table between its marks, and every other byte as it was.

    Raises `ValueError` if the page does not have each mark once.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError("the page must have both marks once: " + BEGIN)
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.split(END)[1]}"
