"""Which check judges a landing: that of the commit under it, and what the branch makes of it.

Settings count for a landing once they are committed on the target. So no edit of a file in any
worktree, and no branch, takes a check away before it has landed under that very check. ADR 0025.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from queenbee.core.command_lines import shell_line
from queenbee.core.text import shell_word, suggested
from queenbee.errors import InvalidInput, QueenError
from queenbee.git.objects import Objects
from queenbee.git.upstream import pushing
from queenbee.store.git_files.worktrees import target_ref, worktrees
from queenbee.store.git_trees import git_tree, name_in_index
from queenbee.store.settings import (
    AT_ONCE,
    FILE_NAME,
    JUDGING,
    SETTINGS,
    Settings,
    by_name,
    load,
    loaded,
    toml_of,
)
from queenbee.store.trust import Proposal, Trust, of_setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.store.layout import Layout
    from queenbee.workflows.complete_hive import Hive

_CHECK = "land.check"
_DECIDING = ("land.", "worktree.")


class Judging(NamedTuple):
    """The settings of one landing, and from where they are."""

    layout: Layout
    path: str
    """The settings file, from the top of the repository; empty if the hive is elsewhere."""
    under: Settings | None = None
    """The settings that the target has in git; None if none can be read there."""
    branch: Settings | None = None
    """Those that the branch has."""

    @classmethod
    def of(cls, layout: Layout) -> Judging:
        """Returns what the files say, before git is asked: what the branch has is committed, or
        about to be.
        """
        path, branch = settings_path(layout), None
        if path and layout.worktree is not None:
            with suppress(OSError, QueenError):
                folder = os.path.join(layout.tree, os.path.dirname(path))
                branch = load(folder, {})
        return cls(layout, path, branch=branch)

    def at(self, objects: Objects, target: str, head: str) -> Judging:
        """Returns what counts for a commit that is to land on a commit of the target."""
        if not self.path:
            return self
        under, branch = (settings_in(objects, each, self.path) for each in (target, head))
        return self._replace(under=under, branch=branch)

    @property
    def settings(self) -> Settings:
        """The settings that count: those of the main worktree only where the target has none."""
        return self.under or self.layout.settings

    @property
    def checks(self) -> list[str]:
        """The commands that must pass, as far as settings say them."""
        first = _check_of(self.under) or self.layout.settings.land_check
        return [*dict.fromkeys(filter(None, (first, _check_of(self.branch))))]

    @property
    def setups(self) -> list[str]:
        """The commands that set up where it is checked, now and once the branch has landed."""
        said = self.layout.settings, self.branch
        return [each.worktree_setup for each in said if each is not None]

    @property
    def is_changed(self) -> bool:
        """Whether the branch changes a setting of landing, or of what a check finds there."""
        under, branch = (each or Settings() for each in (self.under, self.branch))
        names = [each.attribute for each in SETTINGS if each.name.startswith(_DECIDING)]
        return any(getattr(under, each) != getattr(branch, each) for each in names)


def counting(layout: Layout, said: Mapping[str, object]) -> dict[str, object]:
    """Returns the values of settings that count now, by name, where the file of the main worktree
    has said these.
    """
    path, target = settings_path(layout), target_ref(layout)
    if not path or target is None:
        return dict(said)
    with Objects(layout.tree) as objects:
        under = settings_in(objects, target, path)
    if under is None:
        return dict(said)
    landed = by_name(FILE_NAME, toml_of(FILE_NAME, under.text.decode()))
    values = {name: each for name, each in said.items() if name not in JUDGING}
    values |= {name: each for name, each in landed.items() if name in JUDGING}
    if not values.get(_CHECK) and _CHECK in said:
        values[_CHECK] = said[_CHECK]
    return values


def unseen(hive: Hive) -> list[Proposal]:
    """Returns the commands that nobody on this machine has seen, each once: also the checks that
    the target and the branches of worktrees have.
    """
    layout, found = hive.layout, [*hive.documents.unseen_commands()]
    path, checks = settings_path(layout), pushing(layout)
    trees = {each.branch: each.path for each in worktrees(layout) if each.branch}
    with Objects(layout.tree) as objects:
        for branch, tree in trees.items() if path else ():
            said = _check_of(settings_in(objects, f"refs/heads/{branch}", path))
            origin, file = f"{_CHECK} of {branch}", os.path.join(tree, path)
            checks += [replace(e, origin=origin, path=file) for e in of_setting(_CHECK, said)]
    known = {each.key for each in found}
    more = {each.key: each for each in Trust(layout).unseen(checks) if each.key not in known}
    return [*found, *more.values()]


def branch_file(layout: Layout, name: str) -> str | None:
    """Returns the file in which a setting is changed for this branch alone, until it lands; None
    for one that is changed in the main worktree. Raises `InvalidInput` where the branch has none.
    """
    is_of_branch = name.startswith(("land.", "worktree.setup")) and name not in AT_ONCE
    if layout.worktree is None or layout.git_dir is None or not is_of_branch:
        return None
    path = settings_path(layout)
    if path and name_in_index(layout.git_dir, f"{path}\0") is not None:
        return os.path.join(layout.tree, path)
    raise InvalidInput(
        f"{name} changes with a branch, and this one has no {path or FILE_NAME} in git",
        hint=f"cd {shell_word(layout.root)}, and set it there"
        if layout.root != layout.tree
        else f"{suggested('git add', layout.beads_dir)} && git commit, and set it then",
        setting=name,
    )


def whole_check(checks: Sequence[str]) -> str | None:
    """Returns the shell command that succeeds if each of these does, in this order: each in a shell
    of its own, so that no text ends, comments out or takes along another one.
    """
    checks = [*dict.fromkeys(checks)]
    if len(checks) < 2:
        return checks[0] if checks else None
    return " && ".join(" ".join(map(shell_word, shell_line(each))) for each in checks)


def settings_path(layout: Layout) -> str:
    """Returns the path of the settings in the repository; empty if the hive is not in it."""
    here = git_tree(layout.tree) if layout.common_dir is not None else None
    if here is None:
        return ""
    path = os.path.relpath(os.path.join(layout.beads_dir, FILE_NAME), here.main_tree or here.tree)
    return "" if path.startswith(os.pardir + os.sep) else path


def settings_in(objects: Objects, commit: str, path: str) -> Settings | None:
    """Returns the settings of a commit; None if it has none, or none that can be read.

    Raises `ExternalFailure`: a check is never left out because git fails.
    """
    blob = objects.read(f"{commit}:{path}")
    if blob is not None and blob[1] == "blob":
        with suppress(QueenError):
            return loaded(path, blob[2], {})
    return None


def _check_of(settings: Settings | None) -> str:
    return settings.land_check if settings is not None else ""
