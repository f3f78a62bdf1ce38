"""Our hooks in one settings file of Claude Code, added and removed as `queen setup` does it."""

from __future__ import annotations

from collections.abc import Mapping

from queenbee.agents.files import file_edits
from queenbee.agents.files.hook_entries import HookEntries


def install(path: str, wanted: Mapping[str, dict[str, object]]) -> bool:
    """Adds the hooks; returns whether that changed the file."""
    (edit,) = file_edits.gathered([HookEntries(path, wanted)])
    edit.set_up()
    file_edits.write([edit], None)
    return edit.state != file_edits.UNCHANGED


def uninstall(path: str) -> bool:
    """Removes the hooks; returns whether they were there."""
    (edit,) = file_edits.gathered([HookEntries(path, {})])
    edit.undo()
    file_edits.write([edit], None)
    return edit.state != file_edits.UNCHANGED


def installed_events(path: str) -> list[str]:
    """Returns the events for which the file runs the hook."""
    entries = HookEntries(path, {})
    (edit,) = file_edits.gathered([entries])
    return [] if edit.text is None else [event for event, _ in entries.installed(edit.text)]
