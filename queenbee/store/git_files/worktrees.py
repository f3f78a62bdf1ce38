"""The worktrees of a repository and their branches, as git's own files name them.

Starts no git process. A repository that keeps its references elsewhere (reftable) has branches
without a name here.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.core.names import is_name
from queenbee.errors import Unreadable
from queenbee.store import safe_open
from queenbee.store.files import stamp_of
from queenbee.store.git_trees import (
    config_entries,
    config_files,
    config_value,
    git_tree,
    is_at_home,
    leads_to,
    owners_environment,
)

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.store.layout import Layout

_HEADS = "refs/heads/"
_BRANCH = f"ref: {_HEADS}"
_ORIGIN = "ref: refs/remotes/origin/"
_MOST_LINKS = 10
"""Git follows fewer from one reference to the next."""
_BLANKS = " \t\r\n"
"""Git cuts these off, and no other spaces: those may end the name of a branch or a folder."""
CLOSED = "queenbee-closed"
"""Says when the last landing let go of such a checkout; there is none while one has it."""
CHECKOUT = "queen land merges and checks here"
"""Why git has locked a checkout for landings: by that it is told from people's worktrees."""
_REFTABLE = ".invalid"
"""What `HEAD` names in a repository whose references are in tables."""


class Worktree:
    """One working tree of a repository, with what is checked out in it."""

    __slots__ = ("branch", "common_dir", "droid", "git_dir", "head", "linked", "path")

    def __init__(self, path: str, git_dir: str, common_dir: str) -> None:
        self.path: str = path
        """The top of the tree."""
        self.git_dir: str = git_dir
        """The worktree's own git directory."""
        self.common_dir: str = common_dir
        """The git directory that all worktrees share."""
        self.linked: bool = git_dir != common_dir
        """Whether it is not the main worktree."""
        self.branch: str | None = current_branch(git_dir)
        """None if no branch is checked out."""
        self.head: str | None = (
            _line(os.path.join(git_dir, "HEAD"))
            if self.branch is None
            else branch_head(common_dir, self.branch)
        )
        """The commit, as hex digits; None if it has none, or if only git can tell."""
        self.droid: str | None = droid_of(git_dir)
        """The name that the worktree remembers, or None."""


def worktrees(layout: Layout) -> list[Worktree]:
    """Returns the worktrees of the repository that a hive is used from, the main one first.

    Those whose folder is gone, or has the `.git` of something else, are left out, and those whose
    git directory leads to another repository: git would run what that says. So are the main one of
    a bare repository, and checkouts for landings. Empty outside git.
    """
    here = git_tree(layout.tree)
    if here is None:
        return []
    found = []
    if here.main_tree is not None:
        found.append(Worktree(here.main_tree, here.common_dir, here.common_dir))
    return [*found, *_linked(here.common_dir)]


def are_several(layout: Layout) -> bool:
    """Returns whether the repository may have linked worktrees; it costs a few microseconds."""
    if layout.common_dir is None:
        return False
    return bool(safe_open.names_in(os.path.join(layout.common_dir, "worktrees")))


def is_checkout(git_dir: str) -> bool:
    """Returns whether a worktree is a checkout for landings."""
    return bool(git_dir) and _line(os.path.join(git_dir, "locked")) == CHECKOUT


def is_of_user(tree: str, common_dir: str) -> bool:
    """Returns whether the folder of a worktree and the `.git` in it belong to this user. Another
    user's can be emptied by halves, and has what they put there.
    """
    with suppress(OSError):
        paths = (tree, os.path.join(tree, ".git"))
        owners = {os.lstat(each).st_uid for each in paths if os.path.lexists(each)}
        if owners == {os.geteuid()}:
            return True
        import tempfile  # noqa: PLC0415 - start-up

        # Some file systems give all files to somebody else.
        with tempfile.TemporaryFile(dir=common_dir) as made:
            return owners == {os.fstat(made.fileno()).st_uid}
    return False


def target_branch(layout: Layout) -> str | None:
    """Returns the branch on which work lands: the one that is set, or that of the main worktree, or
    of a bare repository; None if that is on none.
    """
    here = git_tree(layout.tree)
    if here is None:
        return None
    return layout.settings.land_target or current_branch(here.common_dir)


def rebased(git_dir: str) -> set[str]:
    """Returns the branches that a rebase which is not finished in a worktree will move: git takes
    them for checked out there, and so must we.
    """
    found = set()
    for name in ("rebase-merge", "rebase-apply"):
        folder = os.path.join(git_dir, name)
        if not os.path.isdir(folder):
            continue
        heads = [_line(os.path.join(folder, "head-name"))]
        updated = _text(os.path.join(folder, "update-refs"))  # Of each, three lines.
        heads += updated.split("\n")[::3] if updated else []
        for head in heads:
            if head is not None and head.startswith(_HEADS):
                found.add(head.removeprefix(_HEADS))
    return found


def default_branch(common_dir: str) -> str | None:
    """Returns the branch of this repository that is the default one of its remote `origin`; without
    that, the one that the main worktree has, or None.
    """
    name = default_of_origin(common_dir)
    is_here = bool(name) and branch_head(common_dir, name) is not None
    return name if is_here else current_branch(common_dir)


def default_of_origin(common_dir: str) -> str:
    """Returns the default branch of the remote `origin`, as far as git knows it; else empty."""
    head = _line(os.path.join(common_dir, "refs", "remotes", "origin", "HEAD")) or ""
    return head.removeprefix(_ORIGIN) if head.startswith(_ORIGIN) else ""


def target_ref(layout: Layout) -> str | None:
    """Returns the full name in git of what work lands on: a branch of this repository; or that of a
    remote as it was last seen, if the name begins with that of a remote, as in `origin/main`.
    """
    name, here = target_branch(layout), git_tree(layout.tree)
    if name is None or here is None:
        return None
    kind = "heads" if remote_of(here.common_dir, name) is None else "remotes"
    return f"refs/{kind}/{name}"


def lands_on_remote(layout: Layout) -> bool:
    """Returns whether work lands on a branch of a remote."""
    return (target_ref(layout) or "").startswith("refs/remotes/")


def remote_of(common_dir: str, name: str) -> str | None:
    """Returns the remote whose branch a name such as `origin/main` is; None for other names."""
    if "/" not in name:
        return None
    remotes = (each for each in _remotes(common_dir) if name.startswith(f"{each}/"))
    return max(remotes, key=len, default=None)


def push_remote(common_dir: str, remote: str) -> str:
    """Returns the remote that gets a branch which is to be merged at another one: the one to which
    git pushes by default, such as a fork, or the same.
    """
    for path in config_files(common_dir, owners_environment(os.environ)):
        said = config_value(path, "remote", "pushdefault")
        if said is not None:
            return said if said in _remotes(common_dir) else remote
    return remote


def has_remotes(common_dir: str) -> bool:
    """Returns whether a repository has any remote."""
    return any(_remotes(common_dir))


def _remotes(common_dir: str) -> Iterator[str]:
    for section, _, _ in config_entries(os.path.join(common_dir, "config")):
        if section.startswith("remote."):
            yield section.removeprefix("remote.")


def current_branch(git_dir: str) -> str | None:
    """Returns the branch that is checked out with this git directory, or None."""
    head = _line(os.path.join(git_dir, "HEAD"))
    if head is None or not head.startswith(_BRANCH):
        return None
    branch = head.removeprefix(_BRANCH)
    return branch if branch != _REFTABLE else None


def branch_head(common_dir: str, branch: str) -> str | None:
    """Returns the commit of a branch, or None if there is none or only git can tell."""
    return ref_target(common_dir, f"refs/heads/{branch}")


def ref_target(common_dir: str, ref: str) -> str | None:
    """Returns what a ref like `refs/heads/main` points to; None if none, or only git can tell."""
    loose = _line(os.path.join(common_dir, ref))
    if loose is not None:
        return None if loose.startswith("ref:") else loose
    end = f" {ref}"
    try:
        packed = safe_open.read(os.path.join(common_dir, "packed-refs"))
    except (OSError, Unreadable):
        return None
    # Other ends of lines that Python knows may be in the name of a branch.
    for line in packed.decode(errors="surrogateescape").split("\n"):
        if line.endswith(end):
            return line.removesuffix(end)
    return None


def real_ref(common_dir: str, ref: str) -> str:
    """Returns the full name of the reference that git changes where it is to change this one: its
    own, or what that leads to as a symbolic one or through a link; empty if it leads in a circle.
    """
    top = os.path.realpath(common_dir)
    for _ in range(_MOST_LINKS):
        path = os.path.join(top, ref)
        above = os.path.realpath(os.path.dirname(path))
        if above != os.path.dirname(path):  # A folder of branches that is a link.
            return os.path.relpath(os.path.join(above, os.path.basename(path)), top)
        said = f"ref: {os.readlink(path)}" if os.path.islink(path) else _line(path)
        # Git replaces a link that leads elsewhere, and does not follow it.
        if said is None or not said.startswith("ref: refs/" if os.path.islink(path) else "ref:"):
            return ref
        ref = said.removeprefix("ref:").strip()
    return ""


def commit_at(tree: str) -> str:
    """Returns a text that changes whenever another commit is checked out; "" outside git."""
    here = git_tree(tree)
    head = _line(os.path.join(here.git_dir, "HEAD")) if here is not None else None
    if here is None or head is None or not head.startswith("ref: "):
        return head or ""
    tables = (
        os.path.join(each, "reftable", "tables.list") for each in (here.git_dir, here.common_dir)
    )
    target = ref_target(here.common_dir, head.removeprefix("ref: "))
    return target or repr([*map(stamp_of, tables)])


def _linked(common_dir: str) -> Iterator[Worktree]:
    for tree, git_dir in noted_trees(common_dir):
        is_whole = leads_to(tree, git_dir) and is_at_home(git_dir, common_dir)
        if is_whole and not is_checkout(git_dir):
            yield Worktree(tree, git_dir, common_dir)


def led_away(common_dir: str) -> Iterator[str]:
    """Yields the linked worktrees that nobody looks into: their git directory leads to another
    repository.
    """
    for tree, git_dir in noted_trees(common_dir):
        if leads_to(tree, git_dir) and not is_at_home(git_dir, common_dir):
            yield tree


def noted_trees(common_dir: str) -> Iterator[tuple[str, str]]:
    """Yields the folders that git takes for linked worktrees, each with its git directory: one may
    be gone, or be something else by now.
    """
    folder = os.path.join(common_dir, "worktrees")
    for name in safe_open.names_in(folder):
        git_dir = os.path.join(folder, name)
        if dot_git := _text(os.path.join(git_dir, "gitdir")):  # It may be relative.
            yield os.path.realpath(os.path.join(git_dir, os.path.dirname(dot_git))), git_dir


def droid_of(git_dir: str) -> str | None:
    """Returns the name that the worktree with this git directory remembers, or None."""
    name = _line(os.path.join(git_dir, "queenbee-droid"))
    return name if name is not None and is_name(name) else None


def _line(path: str) -> str | None:
    """Returns the first line of a file, or None if it cannot be read."""
    text = _text(path)
    return text if text is None else text.split("\n")[0].rstrip(_BLANKS)


def _text(path: str) -> str | None:
    """Returns what is in a file, or None if it cannot be read. A path may have several lines."""
    try:
        text = safe_open.read(path, 64 * 1024).decode(errors="surrogateescape")
    except (OSError, Unreadable):
        return None
    return text.rstrip(_BLANKS)
