"""Verdicts kept for the next process: which grants lost to older ones.

A disposable file in the untracked state. It is used only for the exact lines that it was made
from. If it cannot be read or written, the next process judges again.
"""

from __future__ import annotations

import os

from queenbee.core import plain_json
from queenbee.errors import QueenError
from queenbee.store import safe_open

_RULES = 3
"""Changes with the rules of `core.standing`: what an older version found is judged again."""


def recall(path: str, of: str) -> dict[str, str] | None:
    """Returns the verdicts that were kept for the lines that `of` stands for, or None."""
    try:
        kept = plain_json.loads(safe_open.read(path))
        if kept["rules"] == _RULES and kept["of"] == of and isinstance(kept["lost"], dict):
            return {str(key): str(value) for key, value in kept["lost"].items()}
    except (OSError, QueenError, ValueError, KeyError, TypeError):
        pass
    return None


def keep(path: str, of: str, lost: dict[str, str]) -> None:
    """Keeps verdicts if possible. A reader never sees half a file."""
    try:
        safe_open.make_folder(os.path.dirname(path))
        temporary = f"{path}.{os.urandom(4).hex()}.tmp"
        kept = {"rules": _RULES, "of": of, "lost": lost}
        safe_open.write(temporary, plain_json.dumps(kept).encode())
        safe_open.replace(temporary, path)
    except (OSError, QueenError):
        return
