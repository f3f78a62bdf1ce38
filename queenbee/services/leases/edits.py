"""Edits: the check before an agent changes a file, and the leases that it gets for it.

An agent that knows nothing of leases is safe too: a file that it edits is leased to it for a short
time, each further edit keeps the lease alive, and the session's end ends it. By default such a
lease is an announcement: it keeps others out of the file in this working tree only. ADR 0023.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.glob import pattern as glob
from queenbee.core.leases import NEVER_MS, serves
from queenbee.errors import BadPattern, InvalidInput, NotFound
from queenbee.services.leases.paths import path_of
from queenbee.store.git_files.tree_id import is_of_tree, read_tree_id
from queenbee.store.settings import OFF, SHARED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from queenbee.core.leases import Asker
    from queenbee.core.records import Reservation
    from queenbee.services.leases.reservations import PathStatus, Reservations
    from queenbee.store.layout import Layout

TTL_S = 15 * 60
"""Longer than a pause between two edits of a file; short enough for an abandoned session."""
_RENEW_BELOW_MS = TTL_S * 1000 // 2
"""Half of it: a series of edits writes a line every few minutes, not one for each edit."""


def changed_paths(layout: Layout, files: Iterable[str]) -> list[str]:
    """Returns the paths, from the root, that an edit of these files (absolute names) changes.

    An edit writes through a symbolic link: both the link and the file behind it count. The
    hive's own files and files outside the tree are left out.
    """
    found: dict[str, None] = {}
    for file in files:
        for each in (file, os.path.realpath(file)):
            path = path_in_tree(layout, each)
            if path is not None and not is_exempt(layout, path):
                found[path] = None
    return list(found)


def path_in_tree(layout: Layout, file: str) -> str | None:
    """Returns a file's path from the root of its tree, or None if it is not a file in it."""
    try:
        return path_of(file, tree=layout.tree, cwd=layout.tree)
    except InvalidInput:
        return None


def is_exempt(layout: Layout, path: str) -> bool:
    """Returns whether this is one of the hive's own files: everybody writes to them."""
    own = os.path.relpath(layout.beads_dir, layout.tree)
    return ".beads" in path.split("/") or path == own or path.startswith(own + "/")


def look(
    reservations: Reservations, paths: Iterable[str], session: str | None = None
) -> list[PathStatus]:
    """Returns the status of these paths from the root for the actor; writes nothing."""
    tree = reservations.store.layout.tree
    return reservations.check([os.path.join(tree, path) for path in paths], session=session)


def notes_on_checked(
    paths: Sequence[str], statuses: Sequence[PathStatus], cwd: str
) -> Iterator[str]:
    """Yields a note for each free path that looks like a folder or a pattern.

    `cwd` is the folder that the paths are relative to.
    """
    for path, status in zip(paths, statuses, strict=True):
        if status.status == "held":
            continue
        place = os.path.join(cwd, path)
        if os.path.isdir(place) and not os.path.islink(place):
            yield f"{path} is a folder: its contents were not checked; see: queen reserve list"
        elif set("*?{") & set(path) and not os.path.lexists(place):
            yield f"{path} was treated as a file name, not as a pattern; see: queen reserve list"


def keep(
    reservations: Reservations,
    statuses: Sequence[PathStatus],
    session: str | None,
    env: Mapping[str, str] | None = None,
) -> list[Reservation]:
    """Leases the paths of an edit to the actor: new leases where it has none, longer ones where
    less than half of the time is left. Returns the new ones. Raises `Held` if another droid was
    faster. Files that are ignored (`store.ignore_files`) get none.
    """
    mode = reservations.store.layout.settings.hook_reserve
    if mode == OFF:
        return []
    editor = reservations.editor(session)
    wanted, ending = [], []
    for each in statuses:
        lease = _serving(each, editor)
        if lease is None:
            wanted.append(each.path)
        elif lease.expires_ms - reservations.store.now_ms() < _RENEW_BELOW_MS:
            ending.append((each.path, lease.id))
    if ending:
        try:
            reservations.renew(ids=[lease_id for _, lease_id in ending], ttl_s=TTL_S)
        except NotFound:  # It ended after we looked.
            wanted += [path for path, _ in ending]
    names = _to_lease(reservations.store.layout, wanted, os.environ if env is None else env)
    if not names:
        return []
    return reservations.reserve(
        names,
        exclusive=editor.exclusive,
        alone=mode != SHARED,
        ttl_s=TTL_S,
        session=session,
    )


def kept_until_ms(reservations: Reservations, status: PathStatus, session: str | None) -> int:
    """Returns until when `keep` does nothing for a path, in ms since 1970; 0 if it leases it."""
    if reservations.store.layout.settings.hook_reserve == OFF:
        return NEVER_MS
    lease = _serving(status, reservations.editor(session))
    return lease.expires_ms - _RENEW_BELOW_MS if lease is not None else 0


def _serving(status: PathStatus, editor: Asker) -> Reservation | None:
    """Returns the lease that lets an edit of a path proceed the longest."""
    serving = (lease for lease in status.leases if serves(lease, editor))
    return max(serving, key=lambda lease: lease.expires_ms, default=None)


def _to_lease(layout: Layout, paths: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Returns the patterns, below the tree, of those of these paths that can be leased."""
    if not paths:
        return []
    from queenbee.store.git_files.ignore_files import ignored  # noqa: PLC0415 - start-up

    left_out = ignored(layout, paths, env)
    patterns = [_escaped(path) for path in paths if path not in left_out]
    return [os.path.join(layout.tree, each) for each in patterns if each]


def _escaped(path: str) -> str | None:
    """Returns the pattern of a path, or None for a name that no pattern can express."""
    try:
        return glob.escape(path)
    except BadPattern:
        return None


def end_session(reservations: Reservations, session: str) -> list[Reservation]:
    """Ends the leases that edits took for this session; those reserved by name stay."""
    live = reservations.find(droid=reservations.store.actor)
    return end(reservations, [lease.id for lease in live if lease.session == session])


def announced_here(reservations: Reservations) -> list[Reservation]:
    """Returns what the actor's edits announced in this working tree, in whichever session."""
    tree_id = read_tree_id(reservations.store.layout)
    live = reservations.find(droid=reservations.store.actor)
    return [
        lease
        for lease in live
        if lease.session and not lease.exclusive and is_of_tree(lease, tree_id)
    ]


def end(reservations: Reservations, lease_ids: Sequence[str]) -> list[Reservation]:
    """Ends those of these leases of the actor that have not ended by themselves."""
    ids = list(lease_ids)
    for _ in range(2):
        if not ids:
            break
        try:
            return reservations.release(ids=ids)
        except NotFound:  # One of them expired in the meantime.
            live = {lease.id for lease in reservations.find(droid=reservations.store.actor)}
            ids = [each for each in ids if each in live]
    return []
