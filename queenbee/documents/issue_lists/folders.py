"""A folder with issues in it: Backlog.md's, Task Master's, or one of spec-kit or Kiro.

What a clone has is not trusted: no link is followed, and sizes are bounded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from queenbee.documents.issue_lists.listed import IssueList, read_issue_list, understood
from queenbee.documents.issue_lists.reading import MOST_BYTES, MOST_ENTRIES
from queenbee.documents.issue_lists.sources import BY_NAME
from queenbee.documents.issue_lists.texts import read_backlog_task
from queenbee.errors import InvalidInput
from queenbee.store.git_files.named_files import refuse_led
from queenbee.store.whole_files import read_own

_FILES = ("tasks/tasks.json", "tasks.json", "tasks.md", "TODO.md", "todo.txt", "issues.jsonl")
"""A folder has its issues in the first of these that it has."""
_TASKS = ("backlog/tasks", "tasks", "")
_DONE = ("completed", "backlog/completed")
_MARK = b"---"


def read_issue_folder(
    path: str, *, insisted: str | None = None, mapped: Sequence[str] = ()
) -> IssueList:
    """Returns the issues in a folder. Raises `InvalidInput`, which names what was looked for."""
    refuse_led(path)
    path = os.path.realpath(path)
    tasks = _backlog(path) if insisted in (None, "backlog.md") else {}
    if tasks:
        entries = [read_backlog_task(path, text) for path, text in sorted(tasks.items())]
        return understood(BY_NAME["backlog.md"], entries, mapped)
    for name in _FILES:
        file = os.path.join(path, name)
        if os.path.isfile(file):
            shown = os.path.normpath(os.path.join(os.path.basename(path), name))
            data = read_own(file)
            return read_issue_list(data, name=shown, insisted=insisted, mapped=mapped)
    raise InvalidInput(
        f"{path} has no tasks of Backlog.md, and none of {', '.join(_FILES)}",
        hint="name the file itself: queen issue import --help",
    )


def _backlog(path: str) -> dict[str, str]:
    """Returns the texts of the tasks of Backlog.md in a folder, by file; none if it has none."""
    found: dict[str, str] = {}
    size_bytes = 0
    for below in (*_TASKS, *_DONE):
        folder = os.path.join(path, below) if below else path
        if below in _TASKS and found:
            continue
        for name in sorted(_names(folder)):
            data = read_own(os.path.join(folder, name))
            size_bytes += len(data)
            if size_bytes > MOST_BYTES or len(found) >= MOST_ENTRIES:
                raise InvalidInput(f"{path} has more than {MOST_BYTES:,} bytes of tasks")
            if data.startswith(_MARK):
                found[os.path.join(below, name)] = data.decode(errors="replace")
    return found


def _names(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [
        each
        for each in names
        if each.endswith(".md")
        and os.path.isfile(os.path.join(folder, each))
        and not os.path.islink(os.path.join(folder, each))
    ]
