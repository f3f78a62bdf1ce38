"""The hive's records in the commit that lands: whoever lands carries what is not committed yet.

Records change while a check runs. So they are added after it, to a commit that is otherwise the
one that was checked. In the main worktree only the index learns of that: their files are in use.
ADR 0025.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.errors import QueenError
from queenbee.git.contents.hive_files import is_record
from queenbee.git.landed import is_tracked, left_records, to_carry
from queenbee.git.landing.commands import differing, git
from queenbee.git.landing.moving.healing import put_in_index
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import target_branch

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from queenbee.git.landing.joining import Joining
    from queenbee.git.landing.place import Place

_HIVE = ".beads"
_INDEX = "queenbee-index"


def with_records(
    place: Place, joining: Joining, commit: str, changed: Collection[str]
) -> tuple[str, Sequence[str]]:
    """Returns the commit to land in place of one that was checked, and the records that it carries;
    the same commit where there is nothing to carry, or where that cannot be done. `changed` has
    all records that the commit itself changes.

    The target may have got other records meanwhile: then the commit follows those.
    """
    try:
        return _with_records(place, joining, commit, changed)
    except (OSError, QueenError):  # They wait for the next landing.
        return commit, ()


def _with_records(
    place: Place, joining: Joining, commit: str, changed: Collection[str]
) -> tuple[str, Sequence[str]]:
    store, tree, main = place.store, place.tree, place.main_tree
    target, tip = joining.target, place.tip()
    if not place.main_has_target:
        return commit, ()
    since = differing(tree, target, tip) if tip != target else []
    if os.path.realpath(store.layout.beads_dir) != os.path.join(main, _HIVE):
        return commit, ()
    if not all(map(is_record, since)) or not is_tracked(store.layout):
        return commit, ()
    from queenbee.git.contents.record_blobs import in_the_way, records_of  # noqa: PLC0415 - start-up

    left = left_records(store)
    has_any = left is None or any(map(is_record, left))
    # What is in the way there is said once the work has landed.
    may = has_any and not in_the_way(main, target_branch(store.layout))
    paths = [each for each in to_carry(store, left) if each not in changed] if may else []
    is_behind = since and (joining.top(commit).parents[:1] != [target] or {*changed} & {*since})
    if is_behind or not (paths or since):
        return commit, ()
    index = os.path.join(place.git_dir, _INDEX)
    asked = {"GIT_DIR": place.common_dir, "GIT_INDEX_FILE": index, "GIT_WORK_TREE": main}
    try:
        git("read-tree", no_dash(commit), cwd=main, repository=asked)
        if since:
            put_in_index(main, target, tip, since, asked)
        records = records_of(store, place.objects, main, commit, paths)
        paths = [*records.blobs]
        if not (paths or since):
            return commit, ()
        files = records.tree_in(main, asked)
    finally:
        if os.path.lexists(index):
            safe_open.unlink(index)
    joining.target = tip
    return joining.again(commit, files, target, tip if since else target), paths
