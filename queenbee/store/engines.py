"""Chooses where the lines of a hive are kept, as its settings say."""

from __future__ import annotations

from queenbee.store.files_engine import FilesEngine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.engine import Engine
    from queenbee.store.layout import Layout


def open_engine(layout: Layout) -> Engine:
    """Returns the engine that the settings name. It opens nothing yet."""
    return FilesEngine(layout)
