"""Who is acting: by argument, by environment, or as this worktree remembers it."""

from __future__ import annotations

import os

from queenbee.core.names import checked_name
from queenbee.errors import NoActor, Unwritable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.layout import Layout

VARIABLES = ("QUEEN_DROID", "QUEEN_AGENT", "FACTORY_DROID")


def find_actor(layout: Layout, env: Mapping[str, str], given: str | None) -> tuple[str, str] | None:
    """Returns the actor's name and where it came from, or None where nobody said.

    Raises `InvalidInput` for a name that is not well formed, wherever it came from.
    """
    if given:
        return checked_name(given), "--as"
    for variable in VARIABLES:
        if env.get(variable):
            return checked_name(env[variable]), variable
    try:
        with open(layout.identity_path, encoding="utf-8") as file:
            remembered = file.read(256).strip()
    except (OSError, UnicodeDecodeError):
        return None
    return (checked_name(remembered), layout.identity_path) if remembered else None


def nobody() -> NoActor:
    """Returns the refusal of a command that needs to know who is acting."""
    return NoActor(
        "this needs to know who you are",
        hint="pass --as NAME, set QUEEN_DROID=NAME, or run once: queen whoami --set NAME",
    )


def remember(layout: Layout, name: str) -> None:
    """Keeps the name for this worktree. Raises `Unwritable`."""
    from queenbee.store.documents import write_document

    folder = os.path.dirname(layout.identity_path)
    if not os.path.isdir(folder):
        from queenbee.store.setup import make_state_dir

        make_state_dir(layout)
    try:
        write_document(layout.identity_path, f"{checked_name(name)}\n".encode())
    except Unwritable as error:
        raise Unwritable(
            error.message, hint=f"set QUEEN_DROID={name} instead", path=layout.identity_path
        ) from error
