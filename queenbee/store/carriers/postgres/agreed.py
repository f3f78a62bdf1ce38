"""Whether somebody here has agreed that this clone uses a hive in the user's database.

The settings, which a clone or a pull brings, name the hive; the user's environment names the
database, which may have the hives of other repositories. ADR 0041.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned
from queenbee.errors import Unreadable
from queenbee.store import safe_open
from queenbee.store.carriers.postgres.health import ADDRESS, address
from queenbee.store.layout import noted_hive
from queenbee.store.settings import FILE_NAME
from queenbee.store.trust import DATABASE, Proposal, Trust

if TYPE_CHECKING:
    from queenbee.store.layout import Layout

_NAME = "engine.hive"


def of_hive(layout: Layout, hive: str) -> Proposal:
    """Returns what somebody has to agree to: a hive, in the database of this environment."""
    parts = zip(ADDRESS, address(layout.settings.database), strict=False)
    where = " ".join(f"{name}={value}" for name, value in parts if value)
    more = (f"in your database {where}",)
    return Proposal(DATABASE, f"reads and writes the hive {hive}", more, _NAME)


def unagreed(layout: Layout, hive: str) -> list[Proposal]:
    """Returns what nobody here has agreed to; nothing for a hive in which this clone has written.

    Clones have before anybody was asked. Without an answer, neither the note nor the memory is
    made, which only whoever knows the database can name.
    """
    if noted_hive(layout) == hive and safe_open.is_there(memory_path(layout, hive)):
        return []
    return Trust(layout).unseen([of_hive(layout, hive)])


def refuse_unagreed(layout: Layout, hive: str, way: str = "queen config trust") -> None:
    """Raises `Unreadable` for a hive that nobody here has agreed to, `way` being how to."""
    if unagreed(layout, hive):
        path = os.path.join(layout.beads_dir, FILE_NAME)
        raise Unreadable(
            f"nobody on this machine has agreed that this clone uses the hive {mentioned(hive)} of "
            "your database; nothing was read or written",
            hint=f"if it is the hive of this repository, a person says so: {way}; else "
            f"remove [engine] from {mentioned(path)}",
            path=path,
            setting=_NAME,
        )


def memory_path(layout: Layout, hive: str) -> str:
    """Returns where the memory of this database's hive is: two databases never share one."""
    said = repr((address(layout.settings.database), hive))
    name = blake2b(said.encode(), digest_size=8).hexdigest()
    return os.path.join(layout.state_dir, "postgres", f"{name}.sqlite3")
