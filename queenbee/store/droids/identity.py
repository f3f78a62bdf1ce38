"""Who is acting: by argument, by environment, or as this worktree remembers it."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from queenbee.core.names import ALWAYS_KNOWN, checked_name, is_name, nearest
from queenbee.core.text import printable
from queenbee.errors import InvalidInput, NoActor, UnknownDroid, Unwritable
from queenbee.store import safe_open
from queenbee.store.whole_files import write_document

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.layout import Layout

VARIABLES = ("QUEEN_DROID", "QUEEN_AGENT", "FACTORY_DROID")


def find_actor(layout: Layout, env: Mapping[str, str], given: str | None) -> tuple[str, str] | None:
    """Returns the actor's name and where it came from, or None if that is not set.

    Raises `InvalidInput` if the name is malformed.
    """
    if given:
        return checked_name(given), "--as"
    for variable in VARIABLES:
        if env.get(variable):
            return checked_name(env[variable]), variable
    name = remembered(layout)
    return (checked_name(name), layout.identity_path) if name else None


def remembered(layout: Layout) -> str | None:
    """Returns the name that this worktree remembers, or None."""
    try:
        return safe_open.read(layout.identity_path, 256).decode().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def contradiction(layout: Layout, found: tuple[str, str] | None) -> InvalidInput | None:
    """Returns why nobody can tell who acts, or None: in a linked worktree, which is one droid's,
    the environment names another droid than the one that `found` says.
    """
    if found is None or found[1] not in VARIABLES or layout.worktree is None:
        return None
    (name, variable), own = found, remembered(layout)
    if own is None or own == name:
        return None
    return InvalidInput(
        f"{variable} says that you are {name}, but this worktree is {printable(own)}'s",
        hint=f"unset {variable}, to be {printable(own)}; or add --as {name}",
    )


def hold(layout: Layout) -> int | None:
    """Takes the name that the worktree remembers for a server that lives as long as its client.

    Returns a file to close when it is done, which the kernel does for a process that dies; None if
    another server has the name: two clients that were started in one worktree are two droids.
    Raises `OSError` if no name is remembered.
    """
    fd = safe_open.open_file(layout.identity_path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def nobody(hint: str = "") -> NoActor:
    """Returns the error of a command that needs to know who is acting."""
    return NoActor(
        "this command needs to know who you are",
        hint=hint
        or "pass --as NAME (a person: --as human), set QUEEN_DROID=NAME, or run "
        "once: queen hive whoami --set NAME",
    )


def listed_droids(layout: Layout) -> set[str]:
    """Returns the names of the files `.factory/droids/*.md`; empty if there are none."""
    files = safe_open.names_in(layout.droids_dir)
    return {name for file in files if file.endswith(".md") and is_name(name := file[: -len(".md")])}


def listed_since_ms(layout: Layout, name: str) -> int | None:
    """Returns when the file that lists a droid last changed, in ms since 1970, or None."""
    try:
        return os.stat(os.path.join(layout.droids_dir, f"{name}.md")).st_mtime_ns // 1_000_000
    except OSError:
        return None


def checked_droid(layout: Layout, name: str) -> str:
    """Returns the name unchanged. Raises `InvalidInput` or `UnknownDroid`.

    A name must be listed if the setting `droids` is `strict`, or if it is `auto` (the default),
    the list is not empty, and the droid was not here before it; `human` and `queen` always exist.
    """
    checked_name(name)
    setting = layout.settings.droids
    if setting == "off" or name in ALWAYS_KNOWN:
        return name
    listed = listed_droids(layout)
    is_here = setting == "auto" and os.path.exists(os.path.join(layout.presence_dir, name))
    if name in listed or is_here or (setting == "auto" and not listed):
        return name
    close = nearest(name, listed | ALWAYS_KNOWN)
    raise UnknownDroid(
        f"there is no droid {name!r} in {layout.droids_dir}",
        hint=f"did you mean {close!r}?" if close else f"known: {', '.join(sorted(listed))}",
        droid=name,
        known=sorted(listed | ALWAYS_KNOWN),
    )


def forget(layout: Layout) -> None:
    """Forgets the name that this worktree remembers, if it has one."""
    with suppress(FileNotFoundError):
        safe_open.unlink(layout.identity_path)


def remember(layout: Layout, name: str) -> None:
    """Keeps the name for this worktree. Raises `Unwritable`."""
    layout.refuse_if_moved()
    if not os.path.isdir(os.path.dirname(layout.identity_path)):
        from queenbee.store.creating import make_state_dir  # noqa: PLC0415 - start-up

        make_state_dir(layout)
    try:
        write_document(layout.identity_path, f"{checked_name(name)}\n".encode())
    except Unwritable as error:
        raise Unwritable(
            error.message, hint=f"set QUEEN_DROID={name} instead", path=layout.identity_path
        ) from error
