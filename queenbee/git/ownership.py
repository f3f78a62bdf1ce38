"""What QueenBee has made in a repository: its notes on worktrees and branches. And who may move a
branch or remove a worktree: the hive of the repository, and an agent of a team where it was put.

A name is no proof: a row, another agent or a person may give anything the name of a droid. So what
QueenBee makes gets a note in the git folder, where nothing arrives from elsewhere. The note of a
worktree stands beside git's config, and not where an agent that commits has to write; it has a mark
that is also in the worktree's own git directory, so that it ends with that. That of a branch is in
the repository's config, in the section of the branch, which git removes with the branch, so that a
later branch of that name is not taken for ours; and it names the branch, since git moves or copies
it with one that somebody takes over under another name. ADR 0040.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, suggested
from queenbee.errors import Conflict, ExternalFailure, InvalidInput, NotFound, QueenError
from queenbee.git.outside import outside_git
from queenbee.git.run import as_the_user, line
from queenbee.store import safe_open
from queenbee.store.droids.agent_callers import calling_agent, is_by_agent
from queenbee.store.git_files.main_worktree import refuse_lost
from queenbee.store.git_files.worktrees import (
    branch_head,
    real_ref,
    rebased,
    target_branch,
    target_ref,
    worktrees,
)
from queenbee.store.git_trees import config_entries, git_tree
from queenbee.store.layout import BEADS
from queenbee.store.settings import FILE_NAME
from queenbee.store.whole_files import keep, recall, write_document

if TYPE_CHECKING:
    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

_NOTE = "queenbee-made"
_EMPTIED = "queenbee-emptied"
_TIP = ("rev-parse", "--verify", "--quiet")
_TRIES, _AGAIN_S = 10, 0.1


@dataclass(frozen=True, kw_only=True)
class MadeNote:
    """What was made, and for what."""

    branch: str
    path: str
    base: str
    """The commit that the branch began with; of one that was taken over, all may land."""
    droid: str
    bead: str | None = None
    """The sprint bead whose branch it is; None for one of a droid."""
    adopted: bool = False
    """Whether a person made it and handed it over: it is worked in, but never removed unasked."""
    keeps_work: bool = False
    """Whether the next issue of its droid begins with what is there, because a person said so."""
    by: str = ""
    """The agent of a team that made it; empty if a person or `queen start` did."""

    def is_for(self, droid: str, bead: str | None) -> bool:
        """Returns whether it was made for a sprint bead, or else for a droid."""
        if bead is not None:
            return self.bead == bead or self.keeps_work
        return self.droid == droid and self.bead is None


def worktree_note(place: Worktree) -> MadeNote | None:
    """Returns the note of a worktree that QueenBee made, or None."""
    try:
        mark = safe_open.read(os.path.join(place.git_dir, _NOTE), 1 << 8)
        noted, _, said = safe_open.read(_kept(place.git_dir), 1 << 16).partition(b"\n")
    except (OSError, QueenError):
        return None
    return _read(said) if mark == noted else None


def is_of_droid(place: Worktree, droid: str) -> bool:
    """Returns whether QueenBee's note gives a worktree to a droid, if there is one."""
    note = worktree_note(place)
    return note.droid == droid if note else not os.path.lexists(_kept(place.git_dir))


def branch_note(layout: Layout, branch: str) -> MadeNote | None:
    """Returns the note of a branch that QueenBee made, or None; also of one with another name."""
    note = _branch_notes(layout).get(branch)
    return note if note is not None and note.branch == branch else None


def bead_branches(layout: Layout) -> dict[str, str]:
    """Returns the branches that QueenBee made for sprint beads, each with its bead; also under the
    name that one has by now.
    """
    found = [(name, each) for name, each in _branch_notes(layout).items() if each is not None]
    beads = {name: each.bead for name, each in found if each.bead}
    return {each.branch: each.bead for _, each in found if each.bead} | beads


def _branch_notes(layout: Layout) -> dict[str, MadeNote | None]:
    """Returns the notes in the repository's own config, which may include a file that git tracks:
    that does not count.
    """
    if layout.common_dir is None:
        return {}
    said = config_entries(os.path.join(layout.common_dir, "config"))
    return {
        section.removeprefix("branch."): _read(value.encode(errors="surrogateescape"))
        for section, name, value in said
        if name == _NOTE and section.startswith("branch.")
    }


def note_emptied(git_dir: str, now_ms: int) -> None:
    """Notes that a worktree has nothing that the main branch lacks. Never fails."""
    keep(os.path.join(git_dir, _EMPTIED), now_ms)


def emptied_ms(layout: Layout) -> int:
    """Returns when this worktree is known to have had nothing that the main branch lacks."""
    said = recall(os.path.join(layout.git_dir or layout.state_dir, _EMPTIED), 64)
    return said if type(said) is int else 0


def note_branch(layout: Layout, made: MadeNote) -> None:
    """Notes a branch as made by QueenBee. Raises `ExternalFailure`."""
    how = ("config", "--local", "--replace-all", f"branch.{made.branch}.{_NOTE}")
    for _ in range(_TRIES):
        try:
            as_the_user(*how, no_dash(json.dumps(asdict(made))), cwd=layout.tree)
            return
        except ExternalFailure as error:  # Somebody else writes to the config.
            failure = error
        time.sleep(_AGAIN_S)
    raise failure


def note_worktree(git_dir: str, made: MadeNote) -> None:
    """Notes a worktree as made by QueenBee."""
    path = os.path.join(git_dir, _NOTE)
    try:
        mark = safe_open.read(path, 1 << 8)
    except FileNotFoundError:
        mark = os.urandom(16).hex().encode()
        write_document(path, mark)
    write_document(_kept(git_dir), mark + b"\n" + json.dumps(asdict(made)).encode())


def takes_over(place: Worktree) -> bool:
    """Returns whether the issue that begins in a worktree goes on with all that is there, since a
    person has handed it over; once.
    """
    note = worktree_note(place)
    if note is None or not note.keeps_work:
        return False
    note_worktree(place.git_dir, replace(note, keeps_work=False))
    return True


def forget_worktree(git_dir: str) -> None:
    """Removes the note of a worktree that is gone. Never fails."""
    with suppress(OSError, QueenError):
        safe_open.unlink(_kept(git_dir))


def _kept(git_dir: str) -> str:
    worktrees_dir, name = os.path.split(git_dir)
    return os.path.join(os.path.dirname(worktrees_dir), _NOTE, name)


def adopt(layout: Layout, branch: str) -> None:
    """Notes a branch, and the worktree that has it, as QueenBee's to work in and to land, because a
    person says so. Raises `InvalidInput` for an agent, `NotFound`, and `Conflict` for the branch of
    the main worktree.
    """
    if is_by_agent(layout):
        raise InvalidInput(
            f"only a person hands over a branch: {mentioned(branch)} was named by an agent",
            hint="ask for it in a shell that no agent started",
        )
    target = target_branch(layout)
    tip = line(*_TIP, f"refs/heads/{branch}", cwd=layout.tree, repository={})
    if tip is None:
        raise NotFound(f"there is no branch {mentioned(branch)}", hint="git branch --list")
    ref = f"refs/heads/{branch}"
    if real_ref(str(layout.common_dir), ref) != ref:
        raise Conflict(
            f"{mentioned(branch)} is a symbolic reference, which leads to another branch",
            hint=suggested("git symbolic-ref", ref),
        )
    every = worktrees(layout)
    busy = next((each for each in every if branch in rebased(each.git_dir)), None)
    if busy is not None:
        raise Conflict(
            f"a rebase of {mentioned(branch)} is under way in {mentioned(busy.path)}",
            hint=f"end it first: {suggested('git -C', busy.path)} status",
        )
    place = next((each for each in every if each.branch == branch), None)
    if branch == target or (place is not None and not place.linked):
        raise Conflict(
            f"{mentioned(branch)} is the branch of the main worktree, where work lands",
            hint="name the branch to land: queen worktree list",
        )
    base = line(*_TIP, no_dash(str(target_ref(layout))), cwd=layout.tree, repository={}) or tip
    droid = place.droid if place is not None and place.droid is not None else branch
    path = place.path if place is not None else ""
    made = MadeNote(branch=branch, path=path, base=base, droid=droid, adopted=True, keeps_work=True)
    note_branch(layout, made)
    if place is not None:
        note_worktree(place.git_dir, made)


def is_foreign(layout: Layout, droid: str, branch: str) -> bool:
    """Returns whether the branch that a droid would get is there and was not made for it."""
    place = next((each for each in worktrees(layout) if each.branch == branch), None)
    if place is None and branch_head(str(layout.common_dir), branch) is None:
        return False
    try:
        refuse_foreign(layout, branch, place, droid=droid, bead=None)
    except Conflict:
        return True
    return False


def refuse_foreign(
    layout: Layout, branch: str, place: Worktree | None, *, droid: str, bead: str | None
) -> None:
    """Raises `Conflict` for a branch that was not made for a sprint bead, or else for a droid; and
    for a worktree of which that is true.
    """
    notes = [branch_note(layout, branch)]
    if place is not None:
        notes.append(worktree_note(place))
    if all(note is not None and note.is_for(droid, bead) for note in notes):
        return
    made_for = next((each.bead or each.droid for each in notes if each is not None), None)
    maker = "which QueenBee did not make" if None in notes else f"made for {made_for}"
    ahead = ("rev-list", "--count", no_dash(f"{target_ref(layout)}..refs/heads/{branch}"))
    count = line(*ahead, "--", cwd=layout.tree, repository={})
    where = "" if place is None else f" in {mentioned(place.path)}"
    whose = f" of {place.droid}" if place is not None and place.droid is not None else ""
    again = (
        suggested("queen worktree add", droid, adopt=branch)
        if bead is None
        else suggested("queen worktree add", droid, bead=bead, adopt=branch)
    )
    is_main = branch == target_branch(layout) or (place is not None and not place.linked)
    raise Conflict(
        f"{bead or droid} needs the branch {mentioned(branch)}{where}{whose}, {maker}; "
        f"it has {_commits(count)} that the main branch lacks",
        hint="choose another name: the main worktree has that branch, or work lands on it"
        if is_main
        else f"if all that is there may be worked on and landed: {again}",
        branch=branch,
        worktree=place.path if place is not None else None,
    )


def refuse_other_hive(layout: Layout) -> None:
    """Raises `Conflict` if the repository here has a hive of its own, and this is another one: its
    check, its leases and its issues say nothing of this repository. So it does where nobody knows
    the main worktree.
    """
    refuse_lost(layout)
    own = _other_hive(layout)
    if own is not None:
        top = os.path.dirname(own) + os.sep
        if os.path.realpath(own) == layout.beads_dir and layout.beads_dir.startswith(top):
            raise Conflict(
                f"{mentioned(own)} is a link to {mentioned(layout.beads_dir)}: worktrees are made, "
                "and work lands, only where it is a folder",
                hint=f"{suggested('rm', own)} && {suggested('mv', layout.beads_dir, own)}",
                beads_dir=layout.beads_dir,
            )
        raise Conflict(
            f"{mentioned(layout.beads_dir)} is not the hive of this repository, "
            f"{mentioned(own)}: it changes no branch and no worktree here",
            hint=f"{suggested('cd', layout.tree)}, and the same without --beads-dir and BEADS_DIR",
            beads_dir=layout.beads_dir,
        )


def refuse_outside(layout: Layout) -> None:
    """Raises `Conflict` for an agent of a team outside of the worktree that it was given, and
    `UnknownCaller` there for whoever cannot be told from one.
    """
    agent = calling_agent(layout)
    if agent is not None and not agent.is_at(layout.tree):
        agent.refuse_unknown(f"it lands nothing from {mentioned(layout.tree)}")
        raise Conflict(
            f"{agent.name} works for queen start in {mentioned(agent.path)}: it lands nothing from "
            f"{mentioned(layout.tree)}",
            hint=suggested("cd", agent.path),
        )


def refuse_stranger(layout: Layout) -> None:
    """Raises `Conflict` for whom the branch of this worktree is nothing to land: another hive, and
    an agent of a team outside of its worktree. Raises `InvalidInput` outside git.
    """
    if git_tree(layout.tree) is None:
        raise outside_git(layout.tree)
    refuse_other_hive(layout)
    refuse_outside(layout)


def refuse_removing(layout: Layout, place: Worktree) -> None:
    """Raises `Conflict` for a worktree that an agent of a team did not make, and `UnknownCaller`
    for whoever cannot be told from an agent.
    """
    agent = calling_agent(layout)
    note = worktree_note(place)
    if agent is not None and not (agent.is_here and note is not None and note.by == agent.name):
        agent.refuse_unknown(f"it does not remove {mentioned(place.path)}")
        raise Conflict(
            f"{agent.name}, whom queen start looks after, did not make {mentioned(place.path)}",
            hint="a person removes it, or whoever made it",
        )


def may_move(layout: Layout) -> bool:
    """Returns whether QueenBee may bring the branch that is checked out here up to date."""
    agent = calling_agent(layout)
    return _other_hive(layout) is None and (agent is None or agent.is_at(layout.tree))


def _other_hive(layout: Layout) -> str | None:
    """Returns the hive at the top of the repository here, if that is not this one."""
    here = git_tree(layout.tree)
    if here is None or here.main_tree is None:
        return None
    own = os.path.join(safe_open.real_path(here.main_tree), BEADS)
    if layout.beads_dir == own:
        return None
    names = safe_open.names_in(own)
    if any(each in (FILE_NAME, "issues.jsonl") or each.startswith("queen_") for each in names):
        return own
    # Whatever is in the folder now: what has landed counts.
    landed = f"{target_ref(layout)}:{BEADS}/{FILE_NAME}"
    asked = ("rev-parse", "--verify", "--quiet", no_dash(landed))
    return own if line(*asked, cwd=here.main_tree, repository={}) is not None else None


def _commits(count: str | None) -> str:
    if count in (None, "0", "1"):
        return {None: "an unknown number of commits", "0": "nothing", "1": "one commit"}[count]
    return f"{count} commits"


def _read(said: bytes) -> MadeNote | None:
    try:
        parts = json.loads(said)
        names = ("branch", "path", "base", "droid")
        bead = parts.get("bead")
        return MadeNote(
            **{name: str(parts[name]) for name in names},
            bead=str(bead) if bead is not None else None,
            adopted=parts.get("adopted") is True,
            keeps_work=parts.get("keeps_work") is True,
            by=str(parts.get("by") or ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
