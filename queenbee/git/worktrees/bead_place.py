"""Where a sprint bead is worked on: its worktree, branch and branches to merge, as the bead says.
`docs/sprint-beads.md`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.checks.consent import Consent
from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, suggested
from queenbee.documents.findings import errors_in, in_short
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.sprints.numbers import source_branch_fault, worktree_path
from queenbee.documents.sprints.sprint_bead import check_bead, is_sprint_bead
from queenbee.errors import Conflict, InvalidInput, NotFound, QueenError
from queenbee.git.outside import outside_git
from queenbee.git.ownership import branch_note, worktree_note
from queenbee.git.run import git, line
from queenbee.git.unfinished import FOLDER
from queenbee.git.upstream import Upstream
from queenbee.git.worktrees.worktree_making import add
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import target_ref, worktrees
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.beads import Issue
    from queenbee.git.worktrees.worktree_making import Made
    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout

_INSTEAD = "sprint"
_KEPT = (FOLDER, "refs", "heads", "tags", "remotes", "origin")
"""First parts of branches that no row may name: QueenBee's own, and what git reads otherwise."""


@dataclass(frozen=True, slots=True)
class BeadPlace:
    """The worktree of a sprint bead."""

    path: str
    branch: str
    base: str
    """The full name of the branch that it begins with."""
    merges: Sequence[str]
    """The branches that it merges, as git knows them; those that are gone have landed."""


def bead_place(hive: Services, issue: Issue, path: str | None = None) -> BeadPlace:
    """Returns where a sprint bead is worked on; a person may have typed another `path`.

    Anyone may have written the row: a worktree that would be neither where the document's rule puts
    it nor named `REPOSITORY-…` beside the repository is made by the rule, and so is one of another
    machine. Git cannot have `main` and `main/1-2`: that branch begins with `sprint` instead. Raises
    `InvalidInput` for what is not a valid sprint bead, `NotFound` for branches that are not there,
    and `Conflict` for what is not the bead's to use.
    """
    row = dict(issue.fields)
    if not is_sprint_bead(row):
        raise InvalidInput(f"{issue.id} is not a sprint bead", hint="queen bead list")
    errors = errors_in(check_bead(row))
    source = str(metadata_of(row).get("source_branch"))
    fault = source_branch_fault(source)
    if errors or fault:
        said = in_short(errors) if errors else f"source_branch {fault}"
        hint = suggested("queen bead validate", issue.id)
        raise InvalidInput(f"{issue.id} is not a valid sprint bead: {said}", hint=hint)
    here = git_tree(hive.layout.tree)
    if here is None:
        raise outside_git(hive.layout.tree)
    top, said_of = here.main_tree or here.common_dir, metadata_of(row)
    branch = _branch(str(said_of["branch"]), top)
    _refuse_ambiguous(hive.layout, branch, issue.id)
    upstream = Upstream.of_target(hive.layout)
    # The local branch of that name may have what nobody has pushed.
    is_target = upstream is not None and upstream.branch == source
    base = target_ref(hive.layout) if is_target else _ref(source, top)
    if base is None:
        raise NotFound(
            f"{issue.id} begins with the branch {source}, which is not there",
            hint=suggested("git fetch origin", source),
        )
    if _ref(branch, top, remote=False) is None:
        _refuse_unowned(hive, source, base, top, f"with which {issue.id} begins")
    path = path or _own(hive.layout, issue.id, branch) or _path(said_of, branch, top, issue.id)
    return BeadPlace(path, branch, base, _merges(hive, said_of.get("branches_to_merge"), top))


def sprint_worktree(hive: Services, bead_id: str, droid: str, *, path: str | None = None) -> Made:
    """Claims a sprint bead for a droid, and makes its worktree. Raises as `bead_place` and
    `worktree_making.add` do.
    """
    place = bead_place(hive, hive.issues.get(bead_id), path)
    return add(hive, droid, issue_id=bead_id, path=place.path, branch=place.branch, base=place.base)


def leave_worktree(layout: Layout, path: str) -> None:
    """Has a worktree be nobody's, so that another droid can work on its branch. Never fails."""
    for each in worktrees(layout):
        if each.linked and each.path == path:
            with suppress(OSError, QueenError):
                safe_open.unlink(os.path.join(each.git_dir, "queenbee-droid"))


def _merges(hive: Services, names: object, top: str) -> list[str]:
    """Returns the branches that are there; of the others, their beads must be done."""
    found = []
    for name in names if isinstance(names, list) else ():
        ref = _ref(_branch(str(name), top), top)
        if ref is not None:
            _refuse_unowned(hive, str(name), ref, top, "which is to be merged")
            found.append(ref.removeprefix("refs/heads/").removeprefix("refs/remotes/"))
        elif not any(
            each.done and metadata_of(each.fields).get("branch") == name
            for each in hive.issues.all().values()
        ):
            raise NotFound(
                f"the branch {name}, which is to be merged, is not there",
                hint=suggested("git fetch origin", str(name)),
            )
    return found


def _refuse_unowned(hive: Services, name: str, ref: str, top: str, why: str) -> None:
    """Raises `Conflict` for a branch that is neither on the main branch, nor made here for a bead
    whose row names it, nor handed over; and `Untrusted` if nobody has agreed to the main branch.
    """
    Consent.of(hive).require_target()
    target = str(target_ref(hive.layout))
    ahead = line(
        "rev-list", "--count", no_dash(ref), "--not", no_dash(target), "--", cwd=top, repository={}
    )
    local = ref.startswith("refs/heads/")
    note = branch_note(hive.layout, ref.removeprefix("refs/heads/")) if local else None
    bead = hive.issues.all().get(note.bead) if note is not None and note.bead else None
    is_handed_over = note is not None and note.adopted
    is_made = bead is not None and metadata_of(bead.fields).get("branch") == name
    if ahead == "0" or is_handed_over or is_made:
        return
    maker = "which QueenBee did not make" if note is None else f"made for {note.bead or note.droid}"
    raise Conflict(
        f"the branch {mentioned(name)}, {why}, is {ref}, {maker}; it has commits that the main "
        "branch lacks",
        hint=f"{suggested('git log', f'{target}..{ref}')}; if a person wants to land all of it: "
        f"the same with {suggested('--adopt', name)}",
    )


def branch_conflict(layout: Layout, written: str) -> str | None:
    """Returns why a bead cannot have a branch here, as its row names it, or None: its name is kept
    for something else, or git could take it for another ref, also where a file system ignores case.
    """
    here = git_tree(layout.tree)
    if here is None:
        return None
    top = here.main_tree or here.common_dir
    branch = _branch(written, top)
    name, settings = branch.casefold(), layout.settings
    remotes = (line("config", "--get-regexp", "^remote[.]", cwd=top, repository={}) or "").split()
    kept = {*_KEPT, settings.sync_branch.split("/")[0], settings.sync_remote}
    kept |= {each.split(".")[1] for each in remotes if each.startswith("remote.")}
    first = name.split("/")[0]
    if first in {each.casefold() for each in kept} or first.endswith("head"):
        return f"names that begin with {first} are kept for something else"
    listed = git("for-each-ref", "--format=%(refname)", cwd=top, repository={})
    for ref in os.fsdecode(listed).split("\n"):
        heads = ref.startswith("refs/heads/")
        short = ref.split("/", 2 if heads or ref.startswith("refs/tags/") else 1)[-1].casefold()
        above = heads and (name.startswith(f"{short}/") or short.startswith(f"{name}/"))
        if ref != f"refs/heads/{branch}" and (short == name or above):
            return f"it could be taken for {ref}"
    return None


def _refuse_ambiguous(layout: Layout, branch: str, bead_id: str) -> None:
    """Raises `Conflict` for a branch that a bead cannot have here."""
    if why := branch_conflict(layout, branch):
        raise Conflict(
            f"{bead_id} cannot have the branch {mentioned(branch)}: {why}",
            hint=suggested("queen bead edit", bead_id, set="metadata.branch=NAME"),
        )


def _branch(written: str, top: str) -> str:
    """Returns a branch as it is called here: as written, if git can have it."""
    parts = written.split("/")
    for count in range(1, len(parts)):
        if _ref("/".join(parts[:count]), top, remote=False) is not None:
            return "/".join([_INSTEAD, *parts[count:]])
    return written


def _ref(branch: str, top: str, *, remote: bool = True) -> str | None:
    """Returns the full name of a branch, which may be one of `origin`; None if there is none."""
    for ref in (f"refs/heads/{branch}", *([f"refs/remotes/origin/{branch}"] if remote else [])):
        if line("rev-parse", "--verify", "--quiet", ref, cwd=top, repository={}):
            return ref
    return None


def _own(layout: Layout, bead_id: str, branch: str) -> str | None:
    """Returns where the worktree is that was made for a bead, or that a person has handed over."""
    for place in worktrees(layout):
        note = worktree_note(place) if place.linked else None
        if note is not None and note.branch == branch and note.is_for("", bead_id):
            return place.path
    return None


def _path(said_of: Mapping[str, object], branch: str, top: str, bead_id: str) -> str:
    """Returns where the worktree of a bead is made: as it says, if that place is one for worktrees
    of this repository. Raises `Conflict` if there is something else where the rule puts it.
    """
    top = os.path.realpath(top)
    rule = worktree_path(top, branch)
    written = str(said_of["worktree_path"])
    if os.path.isabs(written):
        real = os.path.realpath(written)
        parent, name = os.path.split(real)
        shared = os.path.basename(worktree_path(top, "").rstrip("/"))
        beside = parent == os.path.dirname(top) and name.startswith(f"{os.path.basename(top)}-")
        by_rule = real == worktree_path(top, str(said_of["branch"]))
        if ((beside and name != shared) or by_rule) and _in_the_way(real, top) is None:
            return real
    other = _in_the_way(rule, top)
    if other is None:
        return rule
    raise Conflict(
        f"{bead_id} needs the worktree {mentioned(rule)}, but {mentioned(other)} is a link, or a "
        "repository or worktree of its own",
        hint=suggested("queen worktree add", bead=bead_id, path="DIR"),
    )


def _in_the_way(path: str, top: str) -> str | None:
    """Returns what below the repository's parent folder leads a path into another place: a link,
    or another repository or worktree above it.
    """
    above, begin = path, os.path.dirname(top)
    while above not in (begin, "/"):
        if os.path.islink(above):
            return above
        above = os.path.dirname(above)
        if above != begin and os.path.lexists(os.path.join(above, ".git")):
            return above
    return None
