"""Forks of a process with threads: none happens while another thread imports a module of ours.

Python guards each module that is being imported by a lock. A child that is forked at that moment
inherits the lock, but not the thread that would release it, and hangs at its first use of the
module. We import many modules inside functions, for the sake of start-up.
"""

from __future__ import annotations

import os
import sys

from queenbee._light import suppress

_PACKAGES = ("queenbee.core", "queenbee.store", "queenbee.services")
"""What a process that only reads and writes records may import at any moment."""
_OTHERS = ("hashlib", "json", "orjson", "sqlite3")
"""What those import inside functions."""
_LATER = (
    "queenbee.services.care",
    "queenbee.services.telling.announcing",
    "queenbee.services.telling.people",
    "queenbee.services.waiting.landing_turn",
    "queenbee.store.engines.postgres",
)
"""They import libraries that import `logging`. That must not begin while a fork does: it would
release a lock after the fork that it had not taken before.
"""
_needed: list[str] = []
"""The names of all of these modules, once they were looked up."""


def _finish_imports() -> None:
    """Waits until what other threads import is there, and imports what they would import next.

    A process pays for this at its first fork with threads: 30 ms.
    """
    threading = sys.modules.get("threading")
    if threading is None or threading.active_count() == 1:
        return
    from importlib import import_module  # noqa: PLC0415 - start-up
    from pkgutil import walk_packages  # noqa: PLC0415 - start-up

    if not _needed:
        for package in _PACKAGES:
            folder = import_module(package).__path__
            _needed.extend(
                each.name
                for each in walk_packages(folder, package + ".")
                if not each.name.startswith(_LATER)
            )
        _needed.extend(_OTHERS)
    for name in (*sys.modules, *_needed):
        with suppress(Exception):  # Whoever needs it is told.
            import_module(name)


os.register_at_fork(before=_finish_imports)
