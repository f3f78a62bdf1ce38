"""The worktrees of a repository at a glance, and removing one of which nothing would be lost."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, some, suggested
from queenbee.core.timestamps import format_ms
from queenbee.errors import Ambiguous, Conflict, ExternalFailure, NotFound, QueenError
from queenbee.git.ownership import (
    branch_note,
    refuse_other_hive,
    refuse_removing,
    worktree_note,
)
from queenbee.git.run import as_the_user, is_ancestor, line
from queenbee.git.touched import Owner
from queenbee.git.trees.elsewhere import refuse_elsewhere
from queenbee.git.trees.hidden import changed_of, hidden_files, way_to_show
from queenbee.git.trees.open_operations import OPEN, open_operations
from queenbee.git.trees.own_branch import is_own, refuse_symbolic
from queenbee.git.unfinished import (
    all_changed,
    branch_part,
    commits_alone,
    keep_worktree,
    move_unkept,
)
from queenbee.git.unmerged import Neighbours
from queenbee.git.worktrees.inner_repositories import (
    ignored_with_nested,
    refuse_inner,
    refuse_nested,
)
from queenbee.git.worktrees.preparing import end_setup
from queenbee.git.worktrees.worktree_removal import begin, begun, refuse_mounts
from queenbee.services.leases.edits import is_exempt
from queenbee.services.waiting.landing_steps import Step
from queenbee.services.waiting.landing_turn import lines_dir
from queenbee.store import safe_open
from queenbee.store.callers.agent_above import is_agent
from queenbee.store.droids import roster
from queenbee.store.droids.agent_callers import calling_agent
from queenbee.store.git_files.tree_id import is_of_tree, read_tree_id
from queenbee.store.git_files.worktrees import (
    CLOSED,
    Worktree,
    is_checkout,
    noted_trees,
    target_ref,
    worktrees,
)
from queenbee.store.git_trees import git_tree, leads_to
from queenbee.store.lock import LongLock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.core.records import Assignment, Reservation
    from queenbee.git.ownership import MadeNote
    from queenbee.git.unmerged import Snapshot
    from queenbee.git.worktrees.worktree_removal import Removal
    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout

_PATIENCE_S = 600.0
"""Whoever removes a worktree, or wants to see them all, waits until git has looked at each."""
_AT_ONCE = 4
"""Git waits for the disk, and starting it takes as long as what it does."""
_NAMED = 5


class Place:
    """One worktree: whose it is, what for, and what it has that the main branch lacks."""

    def __init__(
        self,
        hive: Services,
        found: Worktree,
        work: Snapshot | None,
        unlanded: int | None,
        under_way: Sequence[Assignment],
    ) -> None:
        owner = Owner(hive, found)
        self.found = found
        self.name: str = owner.worktree
        """The name of its folder."""
        self.path: str = found.path
        self.was: str = found.path
        """Where it was before its removal began."""
        self.git_dir: str = found.git_dir
        self.linked: bool = found.linked
        self.branch: str | None = found.branch
        self.droid: str | None = owner.droid
        self.is_named: bool = found.droid is not None
        """Whether the worktree itself remembers its droid."""
        self.tree_id: str | None = read_tree_id(hive.layout, found)
        """It is known as long as this: the file goes with the worktree."""
        self.issue_id: str | None = owner.latest(under_way)
        """The issue that the droid works on there; not one that it has completed."""
        self.unlanded: int | None = unlanded
        """How many commits are not on the main branch; None if git does not say."""
        self.changed: list[str] | None = (
            sorted(path for path in work.changed if not is_exempt(hive.layout, path))
            if work is not None
            else None
        )
        """The files that are not committed; None if git does not say."""
        seen_ms = hive.droids.seen_ms(owner.droid) if owner.droid is not None else None
        self.last_seen_at: str | None = format_ms(seen_ms) if seen_ms else None

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        wanted = ("name", "path", "branch", "droid", "issue_id", "unlanded", "changed")
        return {
            "main": not self.linked,
            **{name: getattr(self, name) for name in wanted},
            "last_seen_at": self.last_seen_at,
        }


@dataclass(frozen=True, slots=True)
class Removed:
    """A worktree that was removed."""

    place: Place
    keeps_branch: bool
    """Whether the branch there is kept: it has commits that are not landed, or is not its own."""
    released: list[str]
    """The patterns of the leases that ended with it."""
    kept: str | None = None
    """The branch with what was on none; None if there was nothing."""
    aside: str | None = None
    """The folder with files that git refuses to add."""
    ignored: Sequence[str] = ()
    """What git ignored there, and is gone, too: files, and folders with a slash."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "name": self.place.name,
            "path": self.place.path,
            "branch": self.place.branch,
            "keeps_branch": self.keeps_branch,
            "released": self.released,
            "kept": self.kept,
            "aside": self.aside,
            "ignored": list(self.ignored),
        }


def places(hive: Services) -> list[Place]:
    """Returns the worktrees of the repository, the main one first."""
    found = Neighbours(hive.layout, budget_s=_PATIENCE_S, own=True)

    def look(each: Worktree) -> tuple[Snapshot | None, int | None]:
        found.files(each)
        known = None if each.git_dir in found.unlooked else found.work(each)
        return known, _unlanded(each, known)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        looks = list(pool.map(look, found.others))
    found.keep()
    under_way = hive.assignments.find()
    every = [
        Place(hive, each, *known, under_way)
        for each, known in zip(found.others, looks, strict=True)
    ]
    return sorted(every, key=lambda each: (each.linked, each.name, each.path))


def remove(hive: Services, name: str, *, force: bool = False) -> Removed:
    """Removes a worktree and the leases of its droid there; and its branch, if it has landed.

    Raises `Conflict` if its droid has an issue there, if it has commits that are not on the main
    branch or that only it has, files that are not committed, a git command under way, or a
    repository in it with commits that no remote has; for an agent, also one that QueenBee did not
    make, another one of its team, or one of a live agent. `force` removes it in spite of the others
    but the first: that repository is lost, the branch stays, and files that are not committed and
    commits that are on none are kept on one. A checkout for landings goes, too, but for `Busy`
    while one uses it.
    """
    with _alone(hive):
        if (checkout := _checkout(hive, name)) is not None:
            return _without_checkout(hive, checkout)
        place, removal = _found(hive, partial(_named, hive, name))
        is_alone = is_agent() and calling_agent(hive.layout) is None  # For a team's: `_removed`.
        if is_alone:
            if _made_note(place) is None:
                raise _of_a_person(place.path)
            refuse_live(
                hive.layout, lambda each: each.is_at(place.path) and not each.is_looked_after_here
            )
        refuse_claimed(hive, place)
        return _removed(hive, place, removal, force=force)


def _checkout(hive: Services, name: str) -> Worktree | None:
    common_dir = str(hive.layout.common_dir)
    for path, git_dir in noted_trees(common_dir):
        if name in (path, os.path.basename(path)) and is_checkout(git_dir):
            return Worktree(path, git_dir, common_dir)
    return None


def _without_checkout(hive: Services, found: Worktree) -> Removed:
    """Removes a checkout for landings, once a branch keeps what is changed in it. Raises `Busy`
    while a landing uses it, and `Conflict` for a repository in it that has commits of its own.
    """
    lines = lines_dir(hive)
    with ExitStack() as stack:
        for each in safe_open.names_in(lines):
            stack.enter_context(Step.of(os.path.join(lines, each), found.path))
        place = Place(hive, found, None, None, ())
        refuse_removing(hive.layout, found)
        refuse_inner(place.path, place.git_dir)
        refuse_nested(place.path, place.git_dir)
        is_ours = _is_as_it_was_left(found)
        kept = None if is_ours else keep_worktree(found, with_files=True, name=place.name)
        ignored = ignored_with_nested(place.path)
        where = ("-f", "-f", "--", place.path)
        as_the_user("worktree", "remove", *where, cwd=str(hive.layout.common_dir))
    return Removed(place, False, [], kept, ignored=ignored)


def _is_as_it_was_left(found: Worktree) -> bool:
    """Returns whether nothing was changed in a checkout since the last landing let go of it."""
    paths = [os.path.join(found.git_dir, each) for each in ("HEAD", CLOSED)]
    with suppress(OSError):
        head_ns, closed_ns = (os.lstat(each).st_ctime_ns for each in paths)
        return head_ns <= closed_ns and not all_changed(found)
    return False


def abandon(hive: Services, path: str) -> Removed:
    """Removes a worktree that its agent leaves for good, once what is not committed in it is on a
    branch; gives back its issues, ends its leases, and keeps a branch that has not landed. Files
    that git ignores go.

    Raises `Conflict` for a worktree that QueenBee did not make, that a person handed over, or that
    an agent of a team works in; and if a repository in it has commits that no remote has.
    """
    with _alone(hive):
        place, removal = _found(hive, partial(_at, hive, path))
        if place.linked and _made_note(place) is None:
            raise _of_a_person(path)
        refuse_live(hive.layout, lambda each: each.is_at(place.path))
        if removal is None:
            refuse_nested(place.path, place.git_dir)
        removed = _removed(hive, place, removal, force=True)
        for each in _claimed(hive, place):
            of_droid = type(hive)(hive.layout, actor=each.droid)
            why = f"its worktree {place.name} was removed"
            of_droid.assignments.release(each.issue_id, reason=why)
    return removed


def _found(hive: Services, look_up: Callable[[list[Place]], Place]) -> tuple[Place, Removal | None]:
    """Returns a worktree, and its removal if that was begun and not finished: it has its old name
    then, although it is elsewhere.
    """
    going = {each.git_dir: each for each in begun(hive.layout)}
    every = places(hive)
    for each in every:
        if each.git_dir in going:
            each.was = going[each.git_dir].path
            each.name = os.path.basename(each.was)
    place = look_up(every)
    return place, going.get(place.git_dir)


def _at(hive: Services, path: str, every: Sequence[Place]) -> Place:
    found = [each for each in every if path == each.path]
    found += [each for each in every if path == each.was]
    if not found:
        _refuse_replaced(hive.layout, path)
        raise NotFound(f"{path} is not a worktree of this repository", hint="queen worktree list")
    return found[0]


def _alone(hive: Services) -> LongLock:
    """Returns the lock under which one worktree is removed after the other."""
    folder = os.path.join(hive.layout.private_dir, "making")
    safe_open.make_folder(folder)
    return LongLock(os.path.join(folder, "removing.lock"), holder=hive.actor_or_none or "queen")


def _removed(
    hive: Services, place: Place, removal: Removal | None = None, *, force: bool
) -> Removed:
    here, aside = git_tree(hive.layout.tree), None
    refuse_other_hive(hive.layout)
    if not place.linked or here is None:
        raise Conflict(f"{place.path} is the main worktree", hint="queen worktree list")
    if place.path == here.tree:
        raise Conflict(
            f"you are in {place.path}",
            hint=f"{suggested('cd', here.main_tree or here.common_dir)}, then the same again",
        )
    refuse_removing(hive.layout, place.found)
    refuse_elsewhere(place.path)
    top = here.main_tree or here.common_dir
    _refuse_locked(place)
    refuse_mounts(place.path)
    refuse_inner(place.path, place.git_dir)
    ignored = ignored_with_nested(place.path)
    leases = _leases(hive, place)
    drops = place.branch is not None and is_own(hive.layout, place.path)
    if removal is None:
        if not force:
            if place.branch is not None:
                refuse_symbolic(hive.layout, place.branch)
            _refuse_unfinished(hive, place)
            _refuse_lonely(place)
        kept, aside = _kept(place.found, force=force)
        removal = begin(place.found, kept, _commit_of_all(place, kept))
    elif commits_alone(place.found):  # Made where it was moved to.
        keep_worktree(place.found, with_files=False, name=branch_part(place.name))
    is_own_branch = _is_made_for(hive, place)
    kept = removal.run(branch_part(place.name), top).kept
    place.path = removal.path
    keeps = place.branch is not None and not (
        drops and is_own_branch and _is_dropped(hive, place, top)
    )
    released = _end(hive, leases)
    return Removed(place, keeps, released, kept, aside, ignored)


def _made_note(place: Place) -> MadeNote | None:
    """Returns the note of a worktree that QueenBee made; None for a person's, also one that was
    handed over.
    """
    note = worktree_note(place.found)
    return note if note is not None and not note.adopted else None


def _of_a_person(path: str) -> Conflict:
    return Conflict(
        f"QueenBee did not make {mentioned(path)}, and removes nothing there",
        hint=f"if nothing in it is needed: {suggested('git worktree remove', path)}",
    )


def _kept(found: Worktree, *, force: bool) -> tuple[str | None, str | None]:
    """Returns the branch that keeps what would be lost, and the folder with what none can keep."""
    try:
        return keep_worktree(found, with_files=force), None
    except ExternalFailure:
        aside = move_unkept(found) if force else None
        if aside is None:
            raise
        return keep_worktree(found, with_files=force), aside


def _commit_of_all(place: Place, kept: str | None) -> str | None:
    """Returns the commit that has the files of a worktree, once a branch keeps what is lost."""
    is_all = bool(kept) and (not open_operations(place.git_dir) or bool(all_changed(place.found)))
    of = f"refs/heads/{kept}" if is_all else "HEAD"
    return line("rev-parse", "--verify", "--quiet", of, cwd=place.path, repository={})


def _refuse_replaced(layout: Layout, name: str) -> None:
    """Raises `Conflict` if the `.git` of this worktree is not the one that git made there, or if
    that leads to another repository.
    """
    common_dir = str(layout.common_dir)
    for each in (Worktree(*said, common_dir) for said in noted_trees(common_dir)):
        dot_git = os.path.join(each.path, ".git")
        is_meant = name in (each.path, os.path.basename(each.path), each.branch, each.droid)
        if not is_meant or not os.path.lexists(dot_git):
            continue
        if leads_to(each.path, each.git_dir):
            refuse_elsewhere(each.path)
        else:
            aside = suggested("mv", dot_git, f"{each.path}.git")
            repairs = f"{suggested('git -C', common_dir)} worktree repair"
            forgets = (
                f"if this repository is a copy of that one: {suggested('rm -r', each.git_dir)}"
            )
            raise Conflict(
                f"{mentioned(dot_git)} is that of another repository, or of another worktree; "
                "nothing was removed",
                hint=(f"{forgets}; else: " if os.path.isfile(dot_git) else "")
                + f"{aside} && {repairs}, then the same again",
            )


def _refuse_locked(place: Place) -> None:
    """Raises `ExternalFailure` if git has locked it, and `Conflict` while it is set up."""
    end_setup(place.path, place.git_dir)
    lock = os.path.join(place.git_dir, "locked")
    if os.path.lexists(lock):
        raise ExternalFailure(
            f"git has locked {mentioned(place.path)}",
            program="git",
            hint=f"if nobody needs it: {suggested('git worktree unlock', place.path)}",
        )


def _named(hive: Services, name: str, every: Sequence[Place]) -> Place:
    """Returns the worktree of a name: the one that QueenBee made for a droid of that name, or in a
    folder of that name, before any other. Raises `Ambiguous` for several.
    """
    ours, others = list[Place](), list[Place]()
    for each in every:
        note, is_at = _made_note(each), name in (each.name, each.path, each.was)
        if note is not None and (is_at or note.is_for(name, None)):
            ours.append(each)
        # A record may give anybody's worktree to a droid.
        elif is_at or name == each.branch or (each.is_named and name == each.droid):
            others.append(each)
    found = ours or others
    if len(found) == 1:
        return found[0]
    if found:
        raise Ambiguous(
            f"{name!r} names {len(found)} worktrees",
            hint="name one by its path: queen worktree list --json",
            candidates=[each.path for each in found],
        )
    _refuse_replaced(hive.layout, name)
    raise NotFound(f"there is no worktree {name!r}", hint="queen worktree list")


def _claimed(hive: Services, place: Place) -> list[Assignment]:
    """Returns the issues that somebody has in a worktree."""
    return [
        each
        for each in hive.assignments.find()
        if place.linked and _is_of(each, place, hive.layout)
    ]


def refuse_claimed(hive: Services, place: Place) -> None:
    """Raises `Conflict` if somebody has an issue in a worktree."""
    held = _claimed(hive, place)
    if held:
        first = held[0]
        raise Conflict(
            f"{first.droid} works on {', '.join(each.issue_id for each in held)} in {place.path}",
            hint=suggested("queen release", first.issue_id, as_=first.droid),
            issues=[each.issue_id for each in held],
        )


def refuse_live(layout: Layout, is_meant: Callable[[roster.Entry], bool]) -> None:
    """Raises `Conflict` if an agent that is meant runs, or a `queen start` looks after it."""
    for each in filter(is_meant, roster.everybody(layout)):
        raise Conflict(
            f"{each.name}, which queen start looks after, works in {each.path}",
            hint="take another name, or end that queen start first",
        )


def _refuse_unfinished(hive: Services, place: Place) -> None:
    note = worktree_note(place.found)
    if note is not None and note.adopted:
        raise _of_a_person(place.path)
    look = suggested("git -C", place.path, "status")
    if place.changed is None or place.unlanded is None:
        raise Conflict(f"git does not say what is in {place.path}", hint=look)
    hidden = changed_of(place.path, hidden_files(place.path))
    if hidden:
        raise Conflict(
            f"git was told not to look at changes in {place.path}: {some(hidden, _NAMED)}",
            hint=way_to_show(place.path, hidden[0]),
            files=hidden,
        )
    closer = [each for each in all_changed(place.found) if not is_exempt(hive.layout, each)]
    if changed := sorted({*place.changed, *closer}):
        what = f"not committed in {place.path}: {some(changed, _NAMED)}"
        # A name is first that of one which QueenBee made.
        name = place.path if note is None else place.name
        keeps = suggested("queen worktree remove", name, force=True)
        raise Conflict(
            what, hint=f"{look}; {keeps} keeps them on a branch unfinished/", files=changed
        )
    if place.unlanded:
        many = f"{place.unlanded} commits" if place.unlanded > 1 else "one commit"
        raise Conflict(
            f"{many} of {place.path} not on the main branch yet",
            hint=f"{suggested('cd', place.path)} && queen land",
            unlanded=place.unlanded,
        )


def _refuse_lonely(place: Place) -> None:
    """Raises `Conflict` for what only this worktree has, and git would remove without a word."""
    opened = open_operations(place.git_dir)
    if opened:
        command, _, *_ = OPEN[opened[0]]
        raise Conflict(
            f"git {command} is under way in {place.path}",
            hint=suggested("git -C", place.path, "status"),
        )
    alone = commits_alone(place.found)
    if alone:
        raise Conflict(
            f"{alone} commit{'s' * (alone > 1)} of {place.path} on no branch",
            hint=suggested("git -C", place.path, "branch", "NAME"),
        )
    refuse_nested(place.path, place.git_dir)


def _unlanded(found: Worktree, work: Snapshot | None) -> int | None:
    if work is None:
        return None
    if not work.committed or work.head is None or work.target is None:
        return 0
    said = line(
        *("rev-list", "--count", "--end-of-options", f"{work.target}..{work.head}"),
        cwd=found.path,
        repository={},
    )
    return int(said) if said is not None else None


def _is_made_for(hive: Services, place: Place) -> bool:
    """Returns whether QueenBee made a branch for the worktree that it is in."""
    note, branch = worktree_note(place.found), str(place.branch)
    made = branch_note(hive.layout, branch)
    is_made = made is not None and not made.adopted
    return note is not None and note.branch == branch and is_made


def _is_dropped(hive: Services, place: Place, top: str) -> bool:
    """Returns whether the branch could go, too: the main branch has it, and git lets it."""
    # Git alone would ask what the branch follows, such as itself at a remote.
    if not is_ancestor(f"refs/heads/{place.branch}", str(target_ref(hive.layout)), cwd=top):
        return False
    try:
        as_the_user("branch", "-q", "-d", "--", str(place.branch), cwd=top)
    except ExternalFailure:
        return False
    return True


def _is_of(record: Assignment | Reservation, place: Place, layout: Layout) -> bool:
    known = {"droid": place.found.droid, "folder": place.name}
    return is_of_tree(record, place.tree_id, **known, layout=layout)


def _leases(hive: Services, place: Place) -> list[Reservation]:
    """Returns the leases that were taken in a worktree.

    Only those of edits say where. Another one counts if its droid is the one that this worktree
    remembers, and if no other worktree does.
    """
    sole = place.is_named and not any(
        each.droid == place.droid and each.git_dir != place.git_dir
        for each in worktrees(hive.layout)
    )
    return [
        lease
        for lease in hive.reservations.find()
        if (sole or lease.worktree is not None or lease.tree_id)
        and _is_of(lease, place, hive.layout)
    ]


def _end(hive: Services, leases: list[Reservation]) -> list[str]:
    """Ends the leases of a worktree that is no more, and returns their patterns."""
    theirs: dict[str, list[str]] = {}
    for lease in leases:
        theirs.setdefault(lease.droid, []).append(lease.id)
    ended = []
    for droid, ids in theirs.items():
        with suppress(QueenError):  # It ended at this moment.
            of_droid = type(hive)(hive.layout, actor=droid)
            ended += [each.pattern for each in of_droid.reservations.release(ids=ids)]
    return ended
