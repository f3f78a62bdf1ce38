"""Notes on how patterns and paths were understood."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.services.leases.reservations import PathStatus


def of_checked(paths: Sequence[str], statuses: Sequence[PathStatus], cwd: str) -> Iterator[str]:
    """Yields a note for each free path that looks like a folder or a pattern.

    `cwd` is the folder that the paths are relative to.
    """
    for path, status in zip(paths, statuses, strict=True):
        if status.status == "held":
            continue
        place = os.path.join(cwd, path)
        if os.path.isdir(place) and not os.path.islink(place):
            yield f"{path} is a folder: its contents were not checked; see: queen reserved"
        elif set("*?{") & set(path) and not os.path.lexists(place):
            yield f"{path} was treated as a file name, not as a pattern; see: queen reserved"
