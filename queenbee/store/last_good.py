"""The last settings that could be read, which count while `queen.toml` cannot be. ADR 0035.

They are kept in the state directory, beside the journal, where no clone and no branch puts a file.
"""

from __future__ import annotations

import os

from queenbee._light import suppress
from queenbee.errors import QueenError, Unreadable
from queenbee.store import safe_open, settings
from queenbee.store.whole_files import take_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.settings import Settings


def path_in(state_dir: str) -> str:
    """Returns where the last good text of the settings is kept."""
    return os.path.join(state_dir, "last-good.toml")


def keep(state_dir: str, text: bytes) -> None:
    """Keeps a text that could be read, in a hive that has a state directory. Never fails."""
    path = path_in(state_dir)
    with suppress(OSError, QueenError):
        if _kept(path) == text or not os.path.isdir(state_dir):
            return
        take_name(path, text, durable=False)


def instead(state_dir: str, env: Mapping[str, str], problem: Unreadable) -> Settings:
    """Returns the settings that count while the file has this problem: the last good ones, or the
    defaults, with which nothing may be written.
    """
    found = settings.Settings()
    found.is_known = False
    with suppress(OSError, QueenError):
        text = _kept(path_in(state_dir))
        if text is not None:
            found = settings.loaded(path_in(state_dir), text, env)
            found.is_known = True
    found.problem = problem
    return found


def _kept(path: str) -> bytes | None:
    with suppress(OSError, QueenError):
        return safe_open.read(path)
    return None
