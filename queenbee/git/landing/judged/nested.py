"""Other repositories in a worktree. Of each, git records no more than the name of a commit, which
is worth nothing where nobody else can get that commit from.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word, suggested
from queenbee.errors import ExternalFailure
from queenbee.git.contents.unfit_blobs import GITLINK, changes
from queenbee.git.landing.commands import git
from queenbee.git.landing.refusals import SHOWN, NotLanded
from queenbee.git.run import names_in
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queenbee.git.contents.unfit_blobs import Change


def lost(tree: str, changed: Sequence[Change], files: str) -> NotLanded | None:
    """Returns the refusal for repositories of which a commit would keep only a name: those that
    are no submodules, and submodules at a commit that no remote has; None if there are none.

    `files` is the commit, or its tree.
    """
    links = [each for each in changed if each.mode == GITLINK]
    names = registered(tree, files) if links else {}
    strange = [each.path for each in links if each.path not in names and not each.before]
    if strange:
        return unregistered(tree, strange)
    here = [
        each.path for each in links if _is_only_here(tree, each.path, names.get(each.path), each)
    ]
    if not here:
        return None
    return NotLanded(
        f"no remote of the submodule has the commit that would land: {named(here, SHOWN)}",
        hint=f"git -C {shell_word(here[0])} push origin HEAD:BRANCH, then queen land again",
        files=here,
    )


def lost_between(tree: str, before: str, after: str, changed: Iterable[str]) -> NotLanded | None:
    """Returns what `lost` says of the difference of two commits, which has these files.

    In a worktree, another repository is a folder: without any, git is not asked.
    """
    if not any(os.path.isdir(os.path.join(tree, each)) for each in changed):
        return None
    return lost(tree, changes(tree, [before], after), after)


def unregistered(tree: str, paths: Sequence[str]) -> NotLanded:
    """Returns the refusal for repositories that are no submodules."""
    first = shell_word(paths[0].rstrip("/"))
    return NotLanded(
        "a repository of its own is in this worktree, and none of its files would land: "
        f"{named(paths, SHOWN)}",
        hint=f"{suggested('cd', tree)} && echo {first} >> .gitignore && git rm -qf --cached "
        f"--ignore-unmatch {first}; or, there, git submodule add URL {first}; or, to commit its "
        f"files, rm -rf {first}/.git",
        files=paths,
    )


def registered(tree: str, files: str) -> dict[str, str]:
    """Returns the names of the submodules for which a commit or a tree has an entry, by path."""
    asked = ("config", "--blob", no_dash(f"{files}:.gitmodules"), "--null", "--get-regexp")
    try:
        said = names_in(git(*asked, r"^submodule\..*\.path$", cwd=tree))
    except ExternalFailure:  # There is no such file, or none can read it.
        return {}
    entries = (each.partition("\n") for each in said)
    return {path: key[len("submodule.") : -len(".path")] for key, _, path in entries}


def _is_only_here(tree: str, path: str, name: str | None, link: Change) -> bool:
    """Returns whether a repository of the submodule on this machine has its commit, and no branch
    of its remotes does.
    """
    place = git_tree(tree)
    folders = [os.path.join(tree, path, ".git")]
    if place is not None and name is not None and ".." not in name.split("/"):
        folders += [
            os.path.join(each, "modules", name) for each in (place.git_dir, place.common_dir)
        ]
    unpushed = False
    for folder in folders:
        with suppress(ExternalFailure):  # It has no such commit.
            asked = ("rev-list", "-1", no_dash(link.blob), "--not", "--remotes", "--")
            if os.path.lexists(folder):
                if not git(*asked, cwd=tree, repository={"GIT_DIR": folder}):
                    return False
                unpushed = True
    return unpushed
