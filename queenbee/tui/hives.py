"""Several hives on one screen: who works where, and what waits for a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from queenbee.core.text import printable, some
from queenbee.library.hives import Glimpse

_EVERY_S = 5.0
_SHOWN = 4


class Hives(App[str]):
    """A row for each hive; Enter ends it with the root of the one that is chosen."""

    TITLE = "queen watch"
    ENABLE_COMMAND_PALETTE = False
    CSS = "DataTable { height: auto; max-height: 60%; } Static { height: 1fr; padding: 1 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "", "Open", priority=False),
        Binding("r", "look", "Look again"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, look: Callable[[], Sequence[Glimpse]]) -> None:
        super().__init__()
        self._look = look
        self._shown: Sequence[Glimpse] = ()

    def compose(self) -> ComposeResult:
        """Yields the table, and what waits below it."""
        yield DataTable[str](cursor_type="row")
        yield Static(markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Looks, and looks again every few seconds."""
        self.query_one(DataTable).add_columns("HIVE", "WAITS FOR YOU", "AT WORK", "READY", "DONE")
        self.action_look()
        self.set_interval(_EVERY_S, self.action_look)

    def action_look(self) -> None:
        """Looks at all hives, beside the screen."""
        self.run_worker(self._looked, thread=True, exclusive=True)

    def _looked(self) -> None:
        found = self._look()
        self.call_from_thread(self._show, found)

    def _show(self, found: Sequence[Glimpse]) -> None:
        table = self.query_one(DataTable)
        at = table.cursor_row
        self._shown = found
        table.clear()
        for each in found:
            table.add_row(*cells(each))
        table.move_cursor(row=min(at, len(found) - 1))
        waits = [f"{each.name}: {want.text}" for each in found for want in each.wants]
        broken = [f"{each.name}: {each.problem}" for each in found if each.problem]
        self.query_one(Static).update(printable("\n".join([*waits, *broken])))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Ends with the hive that was chosen."""
        chosen = self._shown[event.cursor_row]
        if not chosen.problem:
            self.exit(chosen.root)


def cells(hive: Glimpse) -> list[str]:
    """Returns the row of a hive."""
    at_work = some([f"{who} {issue_id}" for who, issue_id in hive.at_work], _SHOWN)
    counts = hive.counts
    done = f"{counts.get('done', 0)} of {counts.get('total', 0)}"
    waits = str(len(hive.wants)) if hive.wants else ""
    texts = [hive.name, waits, at_work, str(counts.get("ready", 0)), done]
    return [printable(each) for each in (texts if not hive.problem else [hive.name, "?"])]
