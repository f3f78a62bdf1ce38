"""All worktrees of a repository against each other, and against the main branch."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, repeat
from typing import TYPE_CHECKING

from queenbee.checks.processes import Interrupts
from queenbee.core.command_lines import no_dash
from queenbee.core.conflicts.appended import everybody_appends_to
from queenbee.git import unmerged
from queenbee.git.collisions import order, snapshots
from queenbee.git.collisions.cache import Cache
from queenbee.git.collisions.copies import Copies
from queenbee.git.collisions.found import Collisions, Pair, Side, Step
from queenbee.git.collisions.pairs import Merger
from queenbee.git.collisions.together import Union
from queenbee.git.outside import outside_git
from queenbee.git.run import line
from queenbee.store.git_files.worktrees import target_branch, target_ref, worktrees
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from queenbee.git.landing.together.checked import Check
    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

_AT_ONCE = 4
"""Snapshots wait for the disk, and for git's own threads."""
_TWICE = 2


def compare(
    layout: Layout, *, with_order: bool = False, check: Check | None = None, jobs: int = 1
) -> Collisions:
    """Returns which worktrees' present work would conflict. Touches no worktree, index, reference
    or object of the repository.

    With a check, it also finds what fails although it merges, with `jobs` checks side by side.
    Raises `InvalidInput` outside git, and `ExternalFailure` if git is older than 2.38 or fails.
    """
    places, own = worktrees(layout), git_tree(layout.tree)
    if not places or own is None:
        raise outside_git(layout.tree)
    here = next((each for each in places if each.path == layout.tree), places[0])
    target, ref = target_branch(layout), target_ref(layout)
    # Asked where we are, so that git refuses a repository of another user.
    line("rev-parse", "--verify", "HEAD", cwd=here.path)
    sides = _sides(places)
    with Cache(layout, own.common_dir) as cache:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(snapshots.look, sides, places, repeat(cache)))
        head = line("rev-parse", "--verify", "--quiet", no_dash(str(ref)), cwd=here.path)
        tip = _tip(sides, places, target, head)
        if tip is not None and tip not in sides:
            sides = [tip, *sides]
        merger = Merger(cache, here, _joined(layout))
        found = Collisions(target, sides, _pairs(sides, merger, cache))
        if with_order or check is not None:
            _take(sides, cache)
        if with_order:
            found.order = _order(found, tip, merger)
        if check is not None and tip is not None and tip.commit is not None:
            objects = [os.path.join(each, "objects") for each in (cache.run, own.common_dir)]
            with Interrupts() as interrupts, Copies(check, objects, jobs, interrupts) as copies:
                rest = _waiting(found, tip, merger)
                found.together = Union(merger, tip.commit, copies).find(rest, check.command)
    found.everybody_adds_to = _added_to(layout, found.pairs, places)
    return found


def _sides(places: Sequence[Worktree]) -> list[Side]:
    sides: list[Side] = []
    for place in places:
        name = place.branch or os.path.basename(place.path)
        if any(side.name == name for side in sides):
            name = place.path
        sides.append(Side(name, place.path, place.branch, place.droid))
    return sides


def _tip(
    sides: Sequence[Side], places: Sequence[Worktree], target: str | None, head: str | None
) -> Side | None:
    """Returns the side that work lands on: a commit `head`, which a worktree may have."""
    if not places[0].linked and places[0].branch == target:
        main = sides[0]
        if main.commit == main.head and main.changes is None:
            return main
        # What its worktree has beyond that is somebody's work, too.
        tip = Side(main.name, None, target, head=main.head, commit=main.head)
        main.name = f"{main.name} (uncommitted)"
        return tip
    if target is None:
        return None
    held = next((each for each in sides if each.branch == target), None)
    return held or Side(target, None, target, head=head, commit=head)


def _take(sides: Iterable[Side], cache: Cache) -> None:
    """Makes a commit of what is not committed on each of these sides."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(snapshots.take, sides, repeat(cache)))


def _meeting(sides: Sequence[Side], merger: Merger) -> list[tuple[Side, Side]]:
    """Returns the pairs that could conflict."""
    names = {each.name: str(each.commit) for each in sides if each.commit is not None}
    reach = merger.reach([*names.values()])
    for each in sides:
        if each.changes is not None:
            path = str(each.worktree)
            reach.add(path, names[each.name], snapshots.touched(each.changes))
            names[each.name] = path
    compared = [each for each in sides if each.name in names]
    return [
        (a, b)
        for a, b in combinations(compared, 2)
        if names[a.name] != names[b.name] and reach.meet(names[a.name], names[b.name])
    ]


def _pairs(sides: Sequence[Side], merger: Merger, cache: Cache) -> list[Pair]:
    meeting = _meeting(sides, merger)
    _take({id(side): side for pair in meeting for side in pair}.values(), cache)
    both = [(a, b) for a, b in meeting if a.commit and b.commit and a.commit != b.commit]
    merged = merger.merge([(str(a.commit), str(b.commit)) for a, b in both])
    files = [each for one in merged for each in one.files]
    merger.locate(files)
    programs = merger.programs(sorted({each.path for each in files}))
    for each in files:
        each.program = programs.get(each.path)
    pairs = [
        Pair(a, b, [each for each in one.files if not merger.joins(each)])
        for (a, b), one in zip(both, merged, strict=True)
    ]
    return [each for each in pairs if each.files]


def _order(found: Collisions, tip: Side | None, merger: Merger) -> list[Step]:
    """Returns the steps of landing everything that the main branch does not have yet."""
    if tip is None or tip.commit is None:
        return []
    waiting = {each.name: each for each in _waiting(found, tip, merger)}
    files: dict[tuple[str, str], list[str]] = {}
    for pair in found.pairs:
        paths = [each.path for each in pair.files]
        files[pair.a.name, pair.b.name] = files[pair.b.name, pair.a.name] = paths
    # Who conflicts with the main branch has to resolve that, whenever it lands.
    names = sorted(waiting, key=lambda name: len(files.get((name, tip.name), ())))
    row = [waiting[name] for name in order.best(names, files)]
    return order.rehearse(row, tip.commit, files, merger)


def _waiting(found: Collisions, tip: Side, merger: Merger) -> list[Side]:
    """Returns the sides that have something that the main branch does not have yet."""
    onto = str(tip.commit)
    others = [
        each
        for each in found.sides
        if each.commit is not None and each is not tip and each.branch != found.target
    ]
    own, *merged = merger.merge([(onto, onto), *((onto, str(each.commit)) for each in others)])
    return [
        each for each, one in zip(others, merged, strict=True) if one.files or one.tree != own.tree
    ]


def _joined(layout: Layout) -> Callable[[str], bool]:
    """Returns whether `queen land` keeps both additions to a file, as the settings say."""
    said = layout.settings
    return lambda path: everybody_appends_to(path, said.land_join, said.land_union)


def _added_to(layout: Layout, pairs: Sequence[Pair], places: Sequence[Worktree]) -> list[str]:
    """Returns the files of the present conflicts that everybody adds lines to, without those
    that `queen land` joins; remembers the present ones.
    """
    is_joined = _joined(layout)
    cache = unmerged.Cache(layout)
    paths = set()
    for pair in pairs:
        both = f"{pair.a.commit} {pair.b.commit}"
        for path in (each.path for each in pair.files if each.only_added):
            known = cache.added.setdefault(path, [])
            if both not in known:
                known.append(both)
                cache.is_new = True
            # More of them say no more.
            del known[_TWICE:]
            if len(known) == _TWICE and not is_joined(path):
                paths.add(path)
    cache.store(places)
    return sorted(paths)
