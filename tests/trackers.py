"""The tracker of an open hive, changed by `queen issue`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from acting import answer

from queenbee import Hive, Issue


@dataclass
class NewIssue:
    """An issue to add; without an id, it gets one."""

    title: str
    description: str = ""
    issue_type: str = "task"
    priority: int = 2
    acceptance: str | None = None
    labels: Sequence[str] = ()
    estimate: int | None = None
    """In minutes."""
    depends_on: Sequence[str] = ()
    parent: str | None = None
    prefix: str | None = None
    issue_id: str | None = None


class Tracker:
    """What the droid of a hive does to issues; a refusal is raised."""

    def __init__(self, hive: Hive) -> None:
        self.hive = hive

    def new(self, asked: NewIssue) -> str:
        """Adds an issue, and returns its id."""
        options = _options(
            description=asked.description,
            type=asked.issue_type,
            priority=asked.priority,
            acceptance=asked.acceptance,
            label=asked.labels,
            estimate=asked.estimate,
            depends_on=asked.depends_on,
            parent=asked.parent,
            prefix=asked.prefix,
            id=asked.issue_id,
        )
        issue_id: str = answer(self.hive, "issue", "new", *options, "--", asked.title)["issue_id"]
        return issue_id

    def edit(
        self,
        issue_id: str,
        *,
        add_labels: Sequence[str] = (),
        remove_labels: Sequence[str] = (),
        **changes: object,
    ) -> Issue:
        """Changes fields of an issue, and returns it."""
        options = _options(label=add_labels, remove_label=remove_labels)
        options += _options(**{_OPTION.get(name, name): changes[name] for name in changes})
        return self._changed("edit", *options, "--", issue_id)

    def close(self, issue_id: str, *, reason: str | None = None, anyway: bool = False) -> Issue:
        """Closes an issue, and returns it."""
        return self._changed("close", *_options(reason=reason, anyway=anyway), "--", issue_id)

    def delete(self, issue_id: str, *, reason: str | None = None, anyway: bool = False) -> Issue:
        """Deletes an issue, and returns what is left of it."""
        return self._changed("delete", *_options(reason=reason, anyway=anyway), "--", issue_id)

    def reopen(self, issue_id: str) -> Issue:
        """Opens an issue again, and returns it."""
        return self._changed("reopen", issue_id)

    def depend(
        self, issue_id: str, on: Sequence[str], *, kind: str = "blocks", remove: bool = False
    ) -> Issue:
        """Makes an issue wait for others, or no longer, and returns it."""
        return self._changed("dep", *_options(type=kind, remove=remove), "--", issue_id, *on)

    def _changed(self, verb: str, *arguments: str) -> Issue:
        (row,) = answer(self.hive, "issue", verb, *arguments)
        return Issue(row)


def export_issues(hive: Hive) -> int:
    """Gives the tracker's file the rows that count; returns how many were written."""
    written: int = answer(hive, "issue", "export")["written"]
    return written


_OPTION = {
    "issue_type": "type",
    "acceptance_criteria": "acceptance",
    "estimated_minutes": "estimate",
    "defer_until": "defer",
}
"""The options that are not named as their fields."""


def _options(**values: Any) -> list[str]:
    """Returns the options of a command; one that is None, false or empty is left out."""
    words = []
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif isinstance(value, list | tuple):
            words += [f"{option}={each}" for each in value]
        elif value is not None and value is not False:
            words.append(f"{option}={value}")
    return words
