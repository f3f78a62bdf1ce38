"""All worktrees of a repository against each other, and against the main branch."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, repeat
from typing import TYPE_CHECKING, Any

from queenbee.errors import ExternalFailure, InvalidInput
from queenbee.git.collisions import order, snapshots
from queenbee.git.collisions.cache import Cache, repository_of
from queenbee.git.collisions.lines import locate
from queenbee.git.collisions.pairs import Merger
from queenbee.git.collisions.values import (
    Collisions,
    ConflictingFile,
    Overlap,
    Pair,
    Side,
    Step,
)
from queenbee.git.landing.union import spec_of
from queenbee.git.run import line, without_programs
from queenbee.store.git_files.worktrees import target_branch, worktrees
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

_AT_ONCE = 4
"""Snapshots wait for the disk, and for git's own threads."""


def compare(layout: Layout, *, with_order: bool = False) -> Collisions:
    """Returns which worktrees' present work would conflict. Touches no worktree, index, reference
    or object of the repository.

    Raises `InvalidInput` outside git, and `ExternalFailure` if git is older than 2.38 or fails.
    """
    places, own = worktrees(layout), git_tree(layout.tree)
    if not places or own is None:
        raise InvalidInput("this is not a git repository", hint="git init")
    here = next((each for each in places if each.path == layout.tree), places[0])
    target = target_branch(layout)
    # Asked where we are, so that git refuses a repository of another user.
    line("rev-parse", "--verify", "HEAD", cwd=here.path)
    with Cache(layout, own.common_dir) as cache:
        try:
            found = _compare(cache, places, here, target, with_order=with_order)
        except ExternalFailure:
            if not cache.results:
                raise
            # An object that an earlier result names may be gone from the repository.
            cache.forget()
            found = _compare(cache, places, here, target, with_order=with_order)
        found.everybody_adds_to = _added_to(found, cache, layout.settings.land_union)
    return found


def _compare(
    cache: Cache,
    places: Sequence[Worktree],
    here: Worktree,
    target: str | None,
    *,
    with_order: bool,
) -> Collisions:
    sides = _sides(places)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(snapshots.take, sides, places, repeat(cache)))
    tip = _tip(sides, places, here, target)
    if tip is not None and tip not in sides:
        sides = [tip, *sides]
    merger = Merger(cache, here, without_programs(here.path, repository_of(here))[0])
    found = Collisions(target, sides, _pairs(cache, sides, merger))
    if with_order:
        found.order = _order(found, tip, merger)
    return found


def _sides(places: Sequence[Worktree]) -> list[Side]:
    sides: list[Side] = []
    for place in places:
        name = place.branch or os.path.basename(place.path)
        if any(side.name == name for side in sides):
            name = place.path
        sides.append(Side(name, worktree=place.path, branch=place.branch, droid=place.droid))
    return sides


def _tip(
    sides: Sequence[Side], places: Sequence[Worktree], here: Worktree, target: str | None
) -> Side | None:
    """Returns the side that work lands on: what the main worktree has committed."""
    if not places[0].linked:
        main = sides[0]
        if main.commit == main.head:
            return main
        # What its worktree has beyond that is somebody's work, too.
        tip = Side(main.name, worktree=None, branch=target, droid=None)
        tip.head = tip.commit = main.head
        main.name = f"{main.name} (uncommitted)"
        return tip
    if target is None:
        return None
    held = next((each for each in sides if each.branch == target), None)
    if held is not None:
        return held
    tip = Side(target, worktree=None, branch=target, droid=None)
    tip.head = tip.commit = line("rev-parse", "--verify", f"refs/heads/{target}", cwd=here.path)
    return tip


def _pairs(cache: Cache, sides: Sequence[Side], merger: Merger) -> list[Pair]:
    compared = [each for each in sides if each.commit is not None]
    both = list(combinations(compared, 2))
    keys = [f"pair {a.commit} {b.commit}" for a, b in both]
    missing = [
        number
        for number, (a, b) in enumerate(both)
        if a.commit != b.commit and not isinstance(cache.results.get(keys[number]), list)
    ]
    merged = merger.merge([(str(both[n][0].commit), str(both[n][1].commit)) for n in missing])
    files = [each for one in merged for each in one.files]
    locate(files, merger.diff)
    for number, one in zip(missing, merged, strict=True):
        cache.results[keys[number]] = [_kept(each) for each in one.files]
        cache.changed = True
    found = [
        Pair(a, b, [_restored(each) for each in kept])
        for (a, b), key in zip(both, keys, strict=True)
        if isinstance(kept := cache.results.get(key), list) and kept
    ]
    paths = sorted({each.path for pair in found for each in pair.files})
    programs = merger.programs(paths) if paths else {}
    for pair in found:
        for each in pair.files:
            each.program = programs.get(each.path)
    return found


def _order(found: Collisions, tip: Side | None, merger: Merger) -> list[Step]:
    """Returns the steps of landing everything that the main branch does not have yet."""
    if tip is None or tip.commit is None:
        return []
    onto = tip.commit
    others = [
        each
        for each in found.sides
        if each.commit is not None and each is not tip and each.branch != found.target
    ]
    own, *merged = merger.merge([(onto, onto), *((onto, str(each.commit)) for each in others)])
    waiting = {
        each.name: each
        for each, one in zip(others, merged, strict=True)
        if one.files or one.tree != own.tree
    }
    files: dict[tuple[str, str], list[str]] = {}
    for pair in found.pairs:
        paths = [each.path for each in pair.files]
        files[pair.a.name, pair.b.name] = files[pair.b.name, pair.a.name] = paths
    # Who conflicts with the main branch has to resolve that, whenever it lands.
    names = sorted(waiting, key=lambda name: len(files.get((name, tip.name), ())))
    row = [waiting[name] for name in order.best(names, files)]
    return order.rehearse(row, onto, files, merger)


def _added_to(found: Collisions, cache: Cache, union: Sequence[str]) -> list[str]:
    """Returns the files of the present conflicts that everybody adds lines to, without those of
    the setting `[land] union`.
    """
    paths = {each.path for pair in found.pairs for each in pair.files if each.only_added}
    if not paths:
        return []
    known = [files for files in cache.results.values() if isinstance(files, list)]
    seen = Counter(
        os.fsdecode(bytes.fromhex(each["path"]))
        for files in known
        for each in files
        if each["only_added"]
    )
    named = spec_of(union)
    return sorted(each for each in paths if seen[each] > 1 and not named.match_file(each))


def _kept(file: ConflictingFile) -> dict[str, object]:
    return {
        "path": os.fsencode(file.path).hex(),
        "kind": file.kind,
        "stages": file.stages,
        "lines": [[*each.base, *each.a, *each.b] for each in file.lines],
        "only_added": file.only_added,
    }


def _restored(kept: dict[str, Any]) -> ConflictingFile:
    stages = {int(stage): (mode, oid) for stage, (mode, oid) in kept["stages"].items()}
    file = ConflictingFile(os.fsdecode(bytes.fromhex(kept["path"])), kept["kind"], stages)
    file.lines = [Overlap((n[0], n[1]), (n[2], n[3]), (n[4], n[5])) for n in kept["lines"]]
    file.only_added = kept["only_added"]
    return file
