"""Verdicts kept for the next process: which grants lost to older ones.

A disposable file in the untracked state. It is used only for the exact lines that it was made
from. If it cannot be read or written, the next process judges again.
"""

from __future__ import annotations

import json
import os

from queenbee.errors import QueenError
from queenbee.store.documents import read_document


_RULES = 2
"""Changes with the rules of `core.standing`: what an older version found is judged again."""


def recall(path: str, of: str) -> dict[str, str] | None:
    """Returns the verdicts that were kept for the lines that `of` stands for, or None."""
    try:
        kept = json.loads(read_document(path))
        if kept["rules"] == _RULES and kept["of"] == of and isinstance(kept["lost"], dict):
            return {str(key): str(value) for key, value in kept["lost"].items()}
    except (QueenError, ValueError, KeyError, TypeError):
        pass
    return None


def keep(path: str, of: str, lost: dict[str, str]) -> None:
    """Keeps verdicts if possible. A reader never sees half a file."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{os.urandom(4).hex()}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"rules": _RULES, "of": of, "lost": lost}, file)
        os.replace(temporary, path)
    except OSError:
        return
