"""Which files an issue names in its text (`src/app.py`, `README.md`), whether they exist or not."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.core.beads import Issue

_PATH = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.\w{1,8}(?![\w/-])", re.ASCII)
_TEXTS = ("title", "description", "design", "acceptance_criteria", "notes")
_AT_MOST_CHARS = 20_000
"""What is read of one text: longer ones are logs."""


def named_in(issue: Issue) -> set[str]:
    """Returns what looks like the path of a file in the texts of an issue."""
    named: set[str] = set()
    for name in _TEXTS:
        text = issue.fields.get(name)
        if isinstance(text, str):
            named.update(_PATH.findall(text[:_AT_MOST_CHARS]))
    return named
